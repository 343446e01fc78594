// Package late makes token codes, and scores passages by them: late interaction
// between the token vectors of the embedding model itself. docs/formats/codes.md
// describes the codes.
package late

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"sluice/kernels/ref"
	"sluice/kernels/simd"
)

// Kind is what codes are made of: so many bits a dimension of a vector of so
// many, after the rotation, and a factor a token.
type Kind struct{ Dimensions, Bits int } // Bits: 1 or 8

// String names the format: part of what decides a score.
func (k Kind) String() string {
	if k.Bits == 1 {
		return "1bit/1"
	}
	return "int8/1"
}

// format is the first byte of codes.
func (k Kind) format() byte {
	if k.Bits == 1 {
		return 1
	}
	return 2
}

// rowBytes is the length of a token's code.
func (k Kind) rowBytes() int {
	if k.Bits == 1 {
		return ref.CodeBytes(k.Dimensions)
	}
	return ref.Code8Bytes(k.Dimensions)
}

const headerBytes = 1 + 4 // format, dimensions

// Coder makes codes of one kind. Safe for concurrent use.
type Coder struct {
	Kind
	kernels  *simd.Set
	rotation simd.Matrix
	scratch  sync.Pool // of *scratch
}

type scratch struct {
	edge            simd.Edge
	tokens, rotated []float32
	products        simd.Scratch
}

// NewCoder returns a Coder of codes of a kind.
func NewCoder(kind Kind) *Coder {
	dims := kind.Dimensions
	c := &Coder{Kind: kind, kernels: simd.Best()}
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
	codes := make([]byte, headerBytes, headerBytes+len(rotated)/c.Dimensions*c.rowBytes())
	codes[0] = c.format()
	binary.LittleEndian.PutUint32(codes[1:], uint32(c.Dimensions))
	for ; len(rotated) > 0; rotated = rotated[c.Dimensions:] {
		codes = c.appendCode(codes, rotated[:c.Dimensions])
	}
	return codes
}

func (c *Coder) appendCode(codes []byte, v []float32) []byte {
	if c.Bits == 1 {
		return appendSigns(codes, v)
	}
	return append8(codes, v)
}

// rotate returns the rows that are not special, of unit length and rotated; they
// are s's.
func (c *Coder) rotate(s *scratch, vectors []float32, special []bool) []float32 {
	s.tokens = s.tokens[:0]
	for token, skip := range special {
		if !skip {
			s.tokens = append(s.tokens, vectors[token*c.Dimensions:(token+1)*c.Dimensions]...)
			ref.Normalize(s.tokens[len(s.tokens)-c.Dimensions:])
		}
	}
	if cap(s.rotated) < len(s.tokens) {
		s.rotated = make([]float32, len(s.tokens))
	}
	rotated := s.rotated[:len(s.tokens)]
	c.kernels.MatMul(rotated, c.Dimensions, s.tokens, c.Dimensions, len(rotated)/c.Dimensions, &c.rotation, 0, c.rotation.Panels(), &s.edge)
	return rotated
}

// append8 appends what ref.Quantize makes of v, padded, and the scale.
func append8(codes []byte, v []float32) []byte {
	at := len(codes)
	codes = append(codes, make([]byte, ref.Code8Bytes(len(v)))...)
	scale := ref.Quantize(codes[at:at+len(v)], v)
	binary.LittleEndian.PutUint32(codes[len(codes)-4:], math.Float32bits(scale))
	return codes
}

// appendSigns appends the signs of v, and the factor that makes a vector's
// product with them an unbiased estimate of that with v: ‖v‖₂² / ‖v‖₁.
func appendSigns(codes []byte, v []float32) []byte {
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

// Rotated returns the query that codes are compared with: the rows that are not
// special, of unit length and rotated.
func (c *Coder) Rotated(vectors []float32, special []bool) []float32 {
	s := c.scratch.Get().(*scratch)
	defer c.scratch.Put(s)
	return slices.Clone(c.rotate(s, vectors, special))
}

// Rows returns the code rows, one after the other, or false if these are no codes of the Coder's kind.
func (c *Coder) Rows(codes []byte) ([]byte, bool) {
	if len(codes) < headerBytes || codes[0] != c.format() || int(binary.LittleEndian.Uint32(codes[1:])) != c.Dimensions {
		return nil, false
	}
	rows := codes[headerBytes:]
	return rows, len(rows)%c.rowBytes() == 0
}

// Reads reports whether these are codes of the Coder's format and dimensions.
func (c *Coder) Reads(codes []byte) bool {
	_, ok := c.Rows(codes)
	return ok
}
