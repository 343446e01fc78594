// Package measure runs kernels and models of real shapes on one GPU, and
// searches by a worker of its own, compares what comes out with the CPU, and
// takes the time. With the build tag nvidia it needs what package driver needs;
// without, it is empty.
package measure
