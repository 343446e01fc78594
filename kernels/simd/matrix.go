// Package simd holds the kernels that decide an encoder's speed, in assembly
// where the CPU has AVX-512 or AVX2 and in plain Go elsewhere. Which one runs
// is decided once, when the program starts; kernels/ref says what each computes.
package simd

// Matrix is the right-hand side of products, packed for the micro-kernel: one
// panel per TileColumns columns, each holding the bias and then Depth rows.
// Columns beyond Columns are zero.
type Matrix struct {
	Depth, Columns int
	data           []float32
}

// Reset makes m a zero matrix of this size, reusing its memory.
func (m *Matrix) Reset(depth, columns int) {
	m.Depth, m.Columns = depth, columns
	size := m.Panels() * m.panelSize()
	if cap(m.data) < size {
		m.data = make([]float32, size)
		return
	}
	m.data = m.data[:size]
	clear(m.data)
}

// Panels is the number of panels; products can be computed panel by panel.
func (m *Matrix) Panels() int { return (m.Columns + TileColumns - 1) / TileColumns }

func (m *Matrix) panelSize() int { return (m.Depth + 1) * TileColumns }

func (m *Matrix) panel(p int) []float32 { return m.data[p*m.panelSize():][:m.panelSize()] }

// SetTransposed packs w, whose rows, stride apart, become columns from column
// at on: m[k][at+n] = w[n*stride+k] for n < count.
func (m *Matrix) SetTransposed(at, count int, w []float32, stride int) {
	for n := range count {
		row := w[n*stride:][:m.Depth]
		panel := m.panel((at + n) / TileColumns)[TileColumns+(at+n)%TileColumns:]
		for k, v := range row {
			panel[k*TileColumns] = v
		}
	}
}

// SetBias packs the row that is added to every row of a product, from column
// at on.
func (m *Matrix) SetBias(at int, bias []float32) {
	for n, v := range bias {
		m.panel((at + n) / TileColumns)[(at+n)%TileColumns] = v
	}
}

// SetRows packs w as it is: m[k][n] = w[k*stride+n].
func (m *Matrix) SetRows(w []float32, stride int) {
	for at := 0; at < m.Columns; at += TileColumns {
		panel := m.panel(at / TileColumns)
		width := min(TileColumns, m.Columns-at)
		for k := range m.Depth {
			copy(panel[(k+1)*TileColumns:][:width], w[k*stride+at:][:width])
		}
	}
}
