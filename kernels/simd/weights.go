package simd

import (
	"unsafe"

	"sluice/kernels/ref"
)

// Number is what products are computed on.
type Number int

const (
	Int8 Number = iota // 8-bit integers with a scale per row and column
	BF16               // bfloat16
)

func (n Number) size() int { return 1 + int(n) }

const (
	panelColumns = 32
	unitBytes    = 4                        // of depth: what one dot-product instruction adds to a sum
	depthBytes   = 64                       // rows are padded to a multiple
	panelBytes   = panelColumns * unitBytes // of one unit of depth
)

// Weights is the right-hand side of products: columns × depth numbers in
// panels of 32 columns, [depth/unit][32][4 bytes], and each column's bias.
// What lies beyond depth and columns is zero.
type Weights struct {
	Depth, Columns int
	number         Number
	rotated        bool
	stride         int // bytes of a row of depth numbers, padded
	data           []byte
	offset         []int32 // undoes the 128 in quantised rows
	scale, bias    []float32
}

// PackInt8 quantises w, whose rows of depth elements become columns, after
// rotating them if the rows to be multiplied are rotated too.
func PackInt8(w, bias []float32, depth int, rotated bool) *Weights {
	m := newWeights(Int8, depth, bias)
	m.rotated = rotated
	row, q := make([]float32, depth), make([]int8, depth)
	for column := range m.Columns {
		copy(row, w[column*depth:])
		if rotated {
			ref.RotateWeights(row)
		}
		m.scale[column] = ref.QuantizeWeights(q, row)
		for k, v := range q {
			m.data[m.at(column, k)] = byte(v)
			m.offset[column] -= 128 * int32(v)
		}
	}
	return m
}

// PackBF16 rounds w, whose rows of depth elements become columns.
func PackBF16(w, bias []float32, depth int) *Weights {
	m := newWeights(BF16, depth, bias)
	for column := range m.Columns {
		for k, v := range w[column*depth:][:depth] {
			*(*uint16)(unsafe.Pointer(&m.data[m.at(column, k)])) = ref.BF16(v)
		}
	}
	return m
}

func newWeights(number Number, depth int, bias []float32) *Weights {
	m := &Weights{Depth: depth, Columns: len(bias), number: number, stride: rowBytes(number, depth)}
	padded := m.Panels() * panelColumns
	m.data = alignedBytes(padded * m.stride)
	m.offset, m.scale, m.bias = make([]int32, padded), make([]float32, padded), make([]float32, padded)
	copy(m.bias, bias)
	return m
}

// rowBytes is the padded size of a row.
func rowBytes(number Number, depth int) int {
	return (depth*number.size() + depthBytes - 1) / depthBytes * depthBytes
}

// at is where a number's bytes begin.
func (m *Weights) at(column, k int) int {
	b := k * m.number.size()
	panel := column / panelColumns * panelColumns * m.stride
	return panel + (b/unitBytes*panelColumns+column%panelColumns)*unitBytes + b%unitBytes
}

// Panels is the number of panels; products can be computed panel by panel.
func (m *Weights) Panels() int { return (m.Columns + panelColumns - 1) / panelColumns }

// Bytes is the memory that m holds.
func (m *Weights) Bytes() int { return len(m.data) + 12*len(m.bias) }

// alignedBytes begins at a cache line.
func alignedBytes(n int) []byte {
	b := make([]byte, n+63)
	start := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[start : start+n : start+n]
}
