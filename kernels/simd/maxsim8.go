package simd

import (
	"unsafe"

	"sluice/kernels/ref"
)

// SimQuery8 is the token vectors of a query, prepared for MaxSim8. Safe for
// concurrent use.
type SimQuery8 struct{ tokens *Weights }

// NewSimQuery8 quantises the tokens × dims elements of vectors.
func NewSimQuery8(vectors []float32, dims int) *SimQuery8 {
	return &SimQuery8{PackInt8(vectors, make([]float32, len(vectors)/dims), dims, false)}
}

// MaxSim8 computes what ref.MaxSim8 does, in float32 from whole sums: all sets
// give the same bits.
func (s *Set) MaxSim8(q *SimQuery8, codes []byte, scratch *Scratch) float32 {
	w := q.tokens
	if w.Columns == 0 {
		return -1
	}
	var sum float64
	for column := 0; column < w.Columns; column += panelColumns {
		var best [panelColumns]float32
		s.bestOfPanel(best[:min(panelColumns, w.Columns-column)], w, column, codes, scratch)
		for i, x := range best[:min(panelColumns, w.Columns-column)] {
			sum += max(-1, float64(float32(x*w.scale[column+i])))
		}
	}
	return float32(sum / float64(w.Columns))
}

// bestOfPanel finds, for each of the query's tokens from column on, the largest
// product with a code row, in steps of the query token's scale.
func (s *Set) bestOfPanel(best []float32, w *Weights, column int, codes []byte, scratch *Scratch) {
	for i := range best {
		best[i] = worst8
	}
	stride := ref.Code8Bytes(w.Depth)
	sums, _ := scratch.strip()
	for ; len(codes) > 0; codes = codes[min(len(codes), maxStripRows*stride):] {
		rows := min(maxStripRows, len(codes)/stride)
		scratch.dot = dotArgs{c: sums, ldc: panelBytes, a: unsafe.Pointer(&codes[0]), lda: stride,
			b: unsafe.Pointer(&w.data[column*w.stride]), units: stride / 16 * 4, rows: rows, panel: 1}
		s.narrow.codeDot(&scratch.dot)
		scratch.dot.a = nil // the codes are the caller's
		for row := range rows {
			raise(best, at[int32](sums, row*panelBytes, len(best)), w.offset[column:], ref.Code8Scale(codes[row*stride:][:stride]))
		}
	}
}

// worst8 is less than any product of two vectors of unit length.
const worst8 = -1e30

func raise(best []float32, sums, offset []int32, scale float32) {
	sums, offset = sums[:len(best)], offset[:len(best)]
	for i, x := range best {
		if v := float32(float32(sums[i]+offset[i]) * scale); v > x {
			best[i] = v
		}
	}
}
