// Package measure runs kernels and models of real shapes on one GPU, compares
// what models say with gpu/cpu, and takes the time. With the build tag nvidia it
// needs what package driver needs; without, it is empty.
package measure
