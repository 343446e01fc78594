package late

import (
	"encoding/binary"
	"math"

	"sluice/kernels/ref"
)

// Decode returns about the vectors that codes were made of, of length 1, row by
// row: to half a step of their largest element with 8 bits; with 1 bit their
// directions only roughly. false: these are no codes of the Coder's kind.
func (c *Coder) Decode(codes []byte) ([]float32, bool) {
	rows, ok := c.Rows(codes)
	if !ok {
		return nil, false
	}
	m, size := rotation(c.Dimensions), c.rowBytes()
	vectors := make([]float32, 0, len(rows)/size*c.Dimensions)
	for ; len(rows) > 0; rows = rows[size:] {
		vectors = append(vectors, c.turnedBack(m, rows[:size])...)
	}
	return vectors, true
}

// turnedBack applies the transpose of the rotation, which is its inverse.
func (c *Coder) turnedBack(m []float32, row []byte) []float32 {
	v := make([]float32, c.Dimensions)
	for k := range c.Dimensions {
		x := c.element(row, k)
		for j := range v {
			v[j] += x * m[j*c.Dimensions+k]
		}
	}
	ref.Normalize(v)
	return v
}

// element is a dimension of the rotated vector.
func (c *Coder) element(row []byte, k int) float32 {
	if c.Bits == 8 {
		return float32(int(row[k])-128) * ref.Code8Scale(row)
	}
	factor := math.Float32frombits(binary.LittleEndian.Uint32(row[len(row)-4:]))
	if row[k/8]>>(k%8)&1 == 1 {
		return factor
	}
	return -factor
}
