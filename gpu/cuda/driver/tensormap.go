//go:build nvidia

package driver

//#include <cuda.h>
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// TensorMap describes a matrix of 16-bit numbers to the Tensor Memory
// Accelerator of compute 9.0; a kernel takes it by value.
type TensorMap struct{ opaque C.CUtensorMap }

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
func NewTensorMap(m Matrix) (*TensorMap, error) {
	if m.BoxColumns*2 != 128 {
		return nil, fmt.Errorf("driver: a box of %d columns is not 128 bytes wide", m.BoxColumns)
	}
	t := new(TensorMap)
	size := [2]C.cuuint64_t{C.cuuint64_t(m.Columns), C.cuuint64_t(m.Rows)}
	strides := [1]C.cuuint64_t{C.cuuint64_t(m.Stride)}
	box := [2]C.cuuint32_t{C.cuuint32_t(m.BoxColumns), C.cuuint32_t(m.BoxRows)}
	steps := [2]C.cuuint32_t{1, 1}
	return t, check(C.cuTensorMapEncodeTiled(&t.opaque, C.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, *(*unsafe.Pointer)(unsafe.Pointer(&m.Address)),
		&size[0], &strides[0], &box[0], &steps[0], C.CU_TENSOR_MAP_INTERLEAVE_NONE, C.CU_TENSOR_MAP_SWIZZLE_128B,
		C.CU_TENSOR_MAP_L2_PROMOTION_L2_128B, C.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
}
