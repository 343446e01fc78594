//go:build nvidia

package driver

/*
#cgo noescape encode
#cgo nocallback encode
#include <cuda.h>
#include <string.h>

// encode makes the map where the driver wants it aligned.
static CUresult encode(unsigned long long *words, unsigned long long address, const cuuint64_t *size, cuuint64_t stride, const cuuint32_t *box) {
	CUtensorMap map;
	const cuuint32_t steps[2] = {1, 1};
	CUresult r = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)address, size, &stride, box, steps,
	                                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
	                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (r == CUDA_SUCCESS) memcpy(words, &map, sizeof map);
	return r;
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// TensorMap describes a matrix of 16-bit numbers to the Tensor Memory
// Accelerator of compute 9.0; a kernel takes it by value, in 16 words.
type TensorMap [16]uint64

// Matrix is rows × columns of bfloat16 at an address, of which a copy takes a
// box. Rows begin stride bytes apart, a multiple of 16.
type Matrix struct {
	Address             cu.DevicePtr
	Rows, Columns       int
	Stride              int
	BoxRows, BoxColumns int
}

// NewTensorMap encodes m; boxes lie in shared memory with their 16-byte parts
// permuted over 128 bytes, which is the width of a box.
func NewTensorMap(m Matrix) (TensorMap, error) {
	var t TensorMap
	if m.BoxColumns*2 != 128 {
		return t, fmt.Errorf("driver: a box of %d columns is not 128 bytes wide", m.BoxColumns)
	}
	size := [2]C.cuuint64_t{C.cuuint64_t(m.Columns), C.cuuint64_t(m.Rows)}
	box := [2]C.cuuint32_t{C.cuuint32_t(m.BoxColumns), C.cuuint32_t(m.BoxRows)}
	err := check(C.encode((*C.ulonglong)(unsafe.Pointer(&t)), C.ulonglong(m.Address), &size[0], C.cuuint64_t(m.Stride), &box[0]))
	return t, err
}
