package simd

import "unsafe"

// A block is the columns that a rotation mixes.
const (
	blockColumns = 128
	blockBytes   = 4 * blockColumns
	cacheLine    = 64
)

// FeedForwardScratch is the memory that one goroutine needs for FeedForward.
type FeedForwardScratch struct {
	products Scratch
	inner    Rows
	middle   []byte
	peaks    []float32 // 16 a row
	row      []float32
}

// FeedForward computes rows [from, to) of activate(x·up + bias)·down + bias
// into the rows of out, or of (activate(x·gate + bias) ∘ (x·up + bias))·down +
// bias if there is a gate. other is for activations other than ref.GELU, or
// nil. Between the two products 8-bit numbers are rotated. Few rows at a time go
// through both, while what lies between them is in cache.
func (s *Set) FeedForward(out []float32, x *Rows, gate, up, down *Weights, from, to int, other func([]float32), scratch *FeedForwardScratch) {
	block := s.narrow.blockRows(up)
	scratch.inner.Reset(up.number, min(block, to-from), up.Columns)
	for ; from < to; from += block {
		rows := min(block, to-from)
		if gate != nil {
			s.upGated(x, gate, up, from, from+rows, other, scratch)
		} else {
			s.up(x, up, from, from+rows, other, scratch)
		}
		s.Product(out[:rows*down.Columns], &scratch.inner, down, 0, rows, false, &scratch.products)
		out = out[rows*down.Columns:]
	}
}

// up sets the inner rows.
func (s *Set) up(x *Rows, w *Weights, from, to int, other func([]float32), scratch *FeedForwardScratch) {
	switch {
	case other == nil && w.number == BF16:
		s.ProductBF16(&scratch.inner, 0, x, w, from, to, true, &scratch.products)
	case other == nil && s.narrow.finishRotated != nil && w.Columns%blockColumns == 0 && to-from <= s.narrow.stripRows:
		s.upRotated(x, w, from, to, scratch)
	default:
		s.upByPasses(x, w, from, to, other, scratch)
	}
}

// upByPasses goes through float32 rows.
func (s *Set) upByPasses(x *Rows, w *Weights, from, to int, other func([]float32), scratch *FeedForwardScratch) {
	middle := scratch.floats(to-from, w.Columns)
	s.Product(middle, x, w, from, to, other == nil, &scratch.products)
	if other != nil {
		other(middle)
	}
	s.SetRows(&scratch.inner, middle, 0, to-from, true, scratch.row)
}

// floats is what lies between the products, before it is rounded.
func (s *FeedForwardScratch) floats(rows, columns int) []float32 {
	s.middle, s.row = growBytes(s.middle, 4*rows*columns), growFloats(s.row, columns)
	return at[float32](unsafe.Pointer(&s.middle[0]), 0, rows*columns)
}

// upGated sets the inner rows by way of two products; 16-bit numbers are
// rounded at once, 8-bit ones when the rows are whole.
func (s *Set) upGated(x *Rows, gate, w *Weights, from, to int, other func([]float32), scratch *FeedForwardScratch) {
	inner := &scratch.inner
	if w.number == BF16 {
		out := unsafe.Pointer(&inner.data[0])
		s.productGated(out, 2, inner.Stride(), x, gate, w, from, to, other, toBF16, &scratch.products)
		return
	}
	middle := scratch.floats(to-from, w.Columns)
	s.productGated(unsafe.Pointer(&middle[0]), 4, w.Columns, x, gate, w, from, to, other, toFloat, &scratch.products)
	s.SetRows(inner, middle, 0, to-from, true, scratch.row)
}

// upRotated activates and rotates a block of columns as soon as it is there;
// then the rows' magnitudes are known, and all is rounded.
func (s *Set) upRotated(x *Rows, w *Weights, from, to int, scratch *FeedForwardScratch) {
	x.check(w, from, to)
	rows := to - from
	ld := w.Columns*4 + cacheLine // an odd number of lines: rows fall into different sets
	scratch.middle, scratch.peaks = growBytes(scratch.middle, rows*ld), growFloats(scratch.peaks, rows*16)
	clear(scratch.peaks)
	d, f := &scratch.products.dot, &scratch.products.rotated
	for column := 0; column < w.Columns; column += blockColumns {
		scratch.products.aim(x, w, from, rows, column)
		d.ldc, d.panel = blockBytes, blockColumns/panelColumns
		s.narrow.int8Dot(d)
		*f = rotatedArgs{acc: d.c, ldAcc: blockBytes, out: unsafe.Pointer(&scratch.middle[column*4]), ldOut: ld, rows: rows,
			rowScale: &x.scale[from], offset: &w.offset[column], scale: &w.scale[column], bias: &w.bias[column], peaks: &scratch.peaks[0]}
		s.narrow.finishRotated(f)
	}
	inner, p := &scratch.inner, &scratch.products.peaks
	*p = peaksArgs{q: &inner.data[0], ldq: inner.stride, scale: &inner.scale[0],
		x: (*float32)(unsafe.Pointer(&scratch.middle[0])), ldx: ld, peaks: &scratch.peaks[0], columns: w.Columns, rows: rows}
	s.narrow.quantizePeaks(p)
}

// growFloats returns n numbers, whose values are undefined.
func growFloats(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
