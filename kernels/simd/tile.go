package simd

const (
	// TileRows × TileColumns is the part of a product that one call of a
	// micro-kernel computes, in registers.
	TileRows    = 12
	TileColumns = 32
)

// tileFunc computes c = panel[0] + a·panel[1:], where a is TileRows rows of
// depth elements, lda apart, panel has depth+1 rows of TileColumns elements,
// and c is TileRows rows of TileColumns elements, ldc apart. Every element of
// c is a sum over depth in ascending order, so that its bits do not depend on
// where in a tile it lies.
type tileFunc func(c []float32, ldc int, a []float32, lda int, panel []float32, depth int)

// tileGo is the micro-kernel for every CPU.
func tileGo(c []float32, ldc int, a []float32, lda int, panel []float32, depth int) {
	for row := range TileRows {
		ar := a[row*lda:][:depth]
		cr := c[row*ldc:][:TileColumns]
		for at := 0; at < TileColumns; at += 8 {
			tileRow8(cr[at:at+8], ar, panel[at:])
		}
	}
}

// tileRow8 keeps eight sums in registers.
func tileRow8(c, a, panel []float32) {
	p := panel[:8]
	c0, c1, c2, c3, c4, c5, c6, c7 := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
	for i, x := range a {
		p := panel[(i+1)*TileColumns:][:8]
		c0 += x * p[0]
		c1 += x * p[1]
		c2 += x * p[2]
		c3 += x * p[3]
		c4 += x * p[4]
		c5 += x * p[5]
		c6 += x * p[6]
		c7 += x * p[7]
	}
	copy(c, []float32{c0, c1, c2, c3, c4, c5, c6, c7})
}
