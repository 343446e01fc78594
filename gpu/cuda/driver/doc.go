// Package driver is what gorgonia.org/cu lacks of CUDA's driver interface:
// pinned memory of the host, attributes of functions, launches that allocate
// nothing, tensor maps, and texts of errors. It works on cu's own types.
//
// With the build tag cuda it needs the headers of CUDA 12 and the static
// libcuda.a of trampoline, which opens the real driver at run time (make -C
// kernels/cuda). Without the tag it is empty, so that everything else builds
// without cgo.
package driver
