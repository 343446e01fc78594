package simd

// Edge is scratch memory for the parts of a product that fill no whole tile.
// One goroutine uses one at a time.
type Edge struct {
	a []float32
	c [TileRows * TileColumns]float32
}

// MatMul computes panels [from, to) of c = a·m + bias. a has rows rows of
// m.Depth elements, lda apart; c has rows rows, ldc apart, of which the
// panels' columns are written.
func (s *Set) MatMul(c []float32, ldc int, a []float32, lda, rows int, m *Matrix, from, to int, edge *Edge) {
	whole := rows - rows%TileRows
	for p := from; p < to; p++ {
		for row := 0; row < whole; row += TileRows {
			s.tileAt(c, row*ldc, ldc, a[row*lda:], lda, TileRows, m, p, edge)
		}
	}
	if whole == rows {
		return
	}
	last := edge.pad(a[whole*lda:], lda, rows-whole, m.Depth)
	for p := from; p < to; p++ {
		s.tileAt(c, whole*ldc, ldc, last, m.Depth, rows-whole, m, p, edge)
	}
}

// tileAt writes rows rows of panel p's product to c, from element start on,
// straight or through the edge.
func (s *Set) tileAt(c []float32, start, ldc int, a []float32, lda, rows int, m *Matrix, p int, edge *Edge) {
	start += p * TileColumns
	width := min(TileColumns, m.Columns-p*TileColumns)
	if rows == TileRows && width == TileColumns {
		s.tile(c[start:], ldc, a, lda, m.panel(p), m.Depth)
		return
	}
	s.tile(edge.c[:], TileColumns, a, lda, m.panel(p), m.Depth)
	for row := range rows {
		copy(c[start+row*ldc:][:width], edge.c[row*TileColumns:])
	}
}

// pad copies the last rows of a to where a whole tile can be read. Whatever
// lies in the rows after them: their products are not used.
func (e *Edge) pad(a []float32, lda, rows, depth int) []float32 {
	if size := TileRows * depth; cap(e.a) < size {
		e.a = make([]float32, size)
	}
	e.a = e.a[:TileRows*depth]
	for row := range rows {
		copy(e.a[row*depth:(row+1)*depth], a[row*lda:])
	}
	return e.a
}
