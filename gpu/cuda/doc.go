// Package cuda runs models on NVIDIA GPUs. The arithmetic is in the program
// sluice-gpu, one process for each GPU, which this package starts, supervises
// and talks to over a socket (package wire): a fault of a GPU spoils its process
// for good, and the daemon needs neither cgo nor anything of CUDA's.
package cuda
