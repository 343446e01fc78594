package simd

import (
	"unsafe"

	"sluice/kernels/ref"
)

// Table is rows of numbers to look up: embeddings. Integers have a scale per
// row.
type Table struct {
	number Number
	width  int
	data   []byte
	scale  []float32
}

// PackTable rounds rows of width values.
func PackTable(number Number, values []float32, width int) *Table {
	rows := len(values) / width
	t := &Table{number: number, width: width, data: alignedBytes(rows * width * number.size()), scale: make([]float32, rows)}
	q := make([]int8, width)
	for row := range rows {
		from := values[row*width:][:width]
		if number == BF16 {
			roundGo(at[uint16](unsafe.Pointer(&t.data[0]), row*width*2, width), from)
			continue
		}
		t.scale[row] = ref.QuantizeWeights(q, from)
		for i, v := range q {
			t.data[row*width+i] = byte(v)
		}
	}
	return t
}

// Bytes is the memory that t holds.
func (t *Table) Bytes() int { return len(t.data) + 4*len(t.scale) }

// Lookup sets dst to a row of t.
func (s *Set) Lookup(dst []float32, t *Table, row int) {
	dst = dst[:t.width]
	size := t.width * t.number.size()
	p := widenArgs{dst: &dst[0], src: unsafe.Pointer(&t.data[row*size : (row+1)*size][0]), n: t.width, scale: t.scale[row]}
	if s.narrow.widen == nil || t.width%16 != 0 {
		widenGo(p, t.number)
		return
	}
	s.narrow.widen(p, t.number)
}

func widenGo(p widenArgs, number Number) {
	dst := unsafe.Slice(p.dst, p.n)
	if number == BF16 {
		for i, v := range at[uint16](p.src, 0, p.n) {
			dst[i] = ref.FromBF16(v)
		}
		return
	}
	for i, v := range at[int8](p.src, 0, p.n) {
		dst[i] = float32(v) * p.scale
	}
}
