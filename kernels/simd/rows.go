package simd

import "unsafe"

// rowSlack is how many rows beyond the last kernels may read.
const rowSlack = panelColumns

// Rows is the left-hand side of products: rows of numbers, padded, and the
// scale of each where they are integers.
type Rows struct {
	number Number
	depth  int
	stride int // bytes
	data   []byte
	scale  []float32
}

// Reset gives r this size, reusing its memory. The content is undefined.
func (r *Rows) Reset(number Number, rows, depth int) {
	stride := rowBytes(number, depth)
	size := (rows + rowSlack) * stride
	if cap(r.data) < size || stride != r.stride {
		r.data = alignedBytes(size) // zero between the rows' ends and their stride
	}
	r.number, r.depth, r.stride, r.data = number, depth, stride, r.data[:size]
	if cap(r.scale) < rows {
		r.scale = make([]float32, rows)
	}
	r.scale = r.scale[:rows]
}

func (r *Rows) row(i int) []byte { return r.data[i*r.stride:][:r.stride] }

// BF16 is rows [from, to) as numbers, each row padded to Stride of them.
func (r *Rows) BF16(from, to int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(&r.data[from*r.stride])), (to-from)*r.stride/2)
}

// Stride is the numbers from one row to the next.
func (r *Rows) Stride() int { return r.stride / r.number.size() }

// Set rounds rows [from, to) of x, each of r's depth, to r's numbers; rotated
// makes the rotation of ref.Rotate precede it. scratch holds one row.
func (s *Set) SetRows(r *Rows, x []float32, from, to int, rotated bool, scratch []float32) {
	x = x[from*r.depth : to*r.depth]
	switch {
	case from == to:
	case r.number == BF16:
		s.narrow.roundRows(r, from, x)
	case r.depth%128 != 0:
		quantizeGo(r, from, x, rotated, scratch)
	default:
		s.narrow.quantize(r, from, x, rotated, scratch[:r.depth])
	}
}
