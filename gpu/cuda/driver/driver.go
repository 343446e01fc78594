//go:build nvidia

package driver

/*
#cgo LDFLAGS: -lcuda -ldl
#cgo noescape launch
#cgo nocallback launch
#include <cuda.h>

extern int trampoline_status(void);

enum { most_words = 48 };

// launch makes the driver's array of pointers from words of 8 bytes.
static CUresult launch(CUfunction function, const unsigned *grid, const unsigned *block, unsigned shared, CUstream stream,
                       const unsigned long long *words, int count) {
	void *parameters[most_words];
	if (count > most_words) return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < count; i++) parameters[i] = (void *)&words[i];
	CUlaunchConfig config = {
		.gridDimX = grid[0], .gridDimY = grid[1], .gridDimZ = grid[2],
		.blockDimX = block[0], .blockDimY = block[1], .blockDimZ = block[2],
		.sharedMemBytes = shared, .hStream = stream,
	};
	return cuLaunchKernelEx(&config, function, parameters, 0);
}
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"
)

// Error is a code of the driver, with its text.
type Error struct {
	Code int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("CUDA error %d: %s", e.Code, e.Text) }

// check makes an error of what a call of the driver returned.
func check(code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return &Error{int(code), Text(int(code))}
}

// Text is what the driver says of an error code. After a fault, the emulated
// driver says what the kernel did.
func Text(code int) string {
	var text *C.char
	if C.cuGetErrorString(C.CUresult(code), &text) != C.CUDA_SUCCESS || text == nil {
		return "unknown"
	}
	return C.GoString(text)
}

// Status is the code with which the driver's initialisation failed, 0 if it did
// not; 100 (no device) where there is no driver. cu reports neither: it finds
// no devices then.
func Status() int { return int(C.trampoline_status()) }

// SharedPerBlock is the attribute of a device that says how many bytes of
// shared memory AllowShared can allow.
const SharedPerBlock cu.DeviceAttribute = C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

// Cu's handles are structs of one pointer.
func function(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }
func stream(s cu.Stream) C.CUstream       { return *(*C.CUstream)(unsafe.Pointer(&s)) }

// AllowShared lets launches of f ask for so many bytes of dynamic shared
// memory; without it they get 48 KiB at most.
func AllowShared(f cu.Function, bytes int) error {
	return check(C.cuFuncSetAttribute(function(f), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Size is the blocks of a grid, or the threads of a block.
type Size struct{ X, Y, Z uint32 }

func (s Size) dimensions() [3]C.uint {
	return [3]C.uint{C.uint(s.X), C.uint(max(1, s.Y)), C.uint(max(1, s.Z))}
}

// Launch queues f in s. A parameter is a word: its value begins at the word's
// first byte, whatever its size; one of more than a word is the last, in as many
// words as it needs. A zero Y or Z is 1. Launch allocates nothing.
func Launch(f cu.Function, s cu.Stream, grid, block Size, shared int, parameters ...uint64) error {
	g, b := grid.dimensions(), block.dimensions()
	words := (*C.ulonglong)(unsafe.Pointer(unsafe.SliceData(parameters)))
	return check(C.launch(function(f), &g[0], &b[0], C.uint(shared), stream(s), words, C.int(len(parameters))))
}

// Int, Float and Pointer make parameters.
func Int(n int) uint64              { return uint64(uint32(int32(n))) }
func Float(x float32) uint64        { return uint64(math.Float32bits(x)) }
func Pointer(p cu.DevicePtr) uint64 { return uint64(p) }
