// Package kernel starts the kernels of kernels/cuda: one method a kernel, which
// knows its grid, its shared memory and which variant fits. Needs the build tag
// cuda; see package driver.
package kernel
