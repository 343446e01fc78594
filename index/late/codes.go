// Package late makes token codes, and scores passages by them: late interaction
// between the token vectors of the embedding model itself. docs/formats/codes.md
// describes the codes.
package late

import (
	"encoding/binary"
	"math"
	"sync"

	"sluice/kernels/ref"
	"sluice/kernels/simd"
)

// Format names what codes are made of: a bit a dimension after the rotation,
// and a factor a token.
const Format = "1bit/1"

const (
	formatByte  = 1
	headerBytes = 1 + 4 // format, dimensions
)

// Coder makes codes of token vectors of one length. Safe for concurrent use.
type Coder struct {
	dims     int
	kernels  *simd.Set
	rotation simd.Matrix
	scratch  sync.Pool // of *scratch
}

type scratch struct {
	edge            simd.Edge
	tokens, rotated []float32
}

// NewCoder returns a Coder for vectors of dims elements.
func NewCoder(dims int) *Coder {
	c := &Coder{dims: dims, kernels: simd.Best()}
	c.rotation.Reset(dims, dims)
	c.rotation.SetRows(rotation(dims), dims)
	c.scratch.New = func() any { return new(scratch) }
	return c
}

// Encode returns the codes of a text: vectors has a row for each of its tokens,
// of any length, and special says which of them are left out.
func (c *Coder) Encode(vectors []float32, special []bool) []byte {
	s := c.scratch.Get().(*scratch)
	defer c.scratch.Put(s)
	rotated := c.rotate(s, vectors, special)
	codes := make([]byte, headerBytes, headerBytes+len(rotated)/c.dims*ref.CodeBytes(c.dims))
	codes[0] = formatByte
	binary.LittleEndian.PutUint32(codes[1:], uint32(c.dims))
	for ; len(rotated) > 0; rotated = rotated[c.dims:] {
		codes = appendCode(codes, rotated[:c.dims])
	}
	return codes
}

// rotate returns the rows that are not special, of unit length and rotated; they
// are s's.
func (c *Coder) rotate(s *scratch, vectors []float32, special []bool) []float32 {
	s.tokens = s.tokens[:0]
	for token, skip := range special {
		if !skip {
			s.tokens = append(s.tokens, vectors[token*c.dims:(token+1)*c.dims]...)
			ref.Normalize(s.tokens[len(s.tokens)-c.dims:])
		}
	}
	if cap(s.rotated) < len(s.tokens) {
		s.rotated = make([]float32, len(s.tokens))
	}
	rotated := s.rotated[:len(s.tokens)]
	c.kernels.MatMul(rotated, c.dims, s.tokens, c.dims, len(rotated)/c.dims, &c.rotation, 0, c.rotation.Panels(), &s.edge)
	return rotated
}

// appendCode appends the signs of v, and the factor that makes a vector's
// product with them an unbiased estimate of that with v: ‖v‖₂² / ‖v‖₁.
func appendCode(codes []byte, v []float32) []byte {
	signs := (len(v) + 15) / 16 * 2
	at := len(codes)
	codes = append(codes, make([]byte, signs)...)
	var sum, squares float64
	for d, x := range v {
		if x >= 0 {
			codes[at+d/8] |= 1 << (d % 8)
		}
		sum += math.Abs(float64(x))
		squares += float64(float64(x) * float64(x))
	}
	factor := float32(0)
	if sum > 0 {
		factor = float32(squares / sum)
	}
	return binary.LittleEndian.AppendUint32(codes, math.Float32bits(factor))
}

// rows returns the code rows, or false if these are no codes of the Coder's kind.
func (c *Coder) rows(codes []byte) ([]byte, bool) {
	if len(codes) < headerBytes || codes[0] != formatByte || int(binary.LittleEndian.Uint32(codes[1:])) != c.dims {
		return nil, false
	}
	rows := codes[headerBytes:]
	return rows, len(rows)%ref.CodeBytes(c.dims) == 0
}

// Reads reports whether these are codes of the Coder's format and dimensions.
func (c *Coder) Reads(codes []byte) bool {
	_, ok := c.rows(codes)
	return ok
}
