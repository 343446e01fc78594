package simd

// tile512 keeps all of a tile in 24 registers.
func tile512(c []float32, ldc int, a []float32, lda int, panel []float32, depth int) {
	checkTile(c, ldc, a, lda, panel, depth)
	tileAVX512(&c[0], ldc, &a[0], lda, &panel[0], depth)
}

// tile256 computes a tile in quarters of 6 × 16, in 12 registers.
func tile256(c []float32, ldc int, a []float32, lda int, panel []float32, depth int) {
	checkTile(c, ldc, a, lda, panel, depth)
	for row := 0; row < TileRows; row += 6 {
		for column := 0; column < TileColumns; column += 16 {
			tileAVX2(&c[row*ldc+column], ldc, &a[row*lda], lda, &panel[column], depth)
		}
	}
}

// checkTile panics, as Go's own indexing would, where assembly would leave a slice.
func checkTile(c []float32, ldc int, a []float32, lda int, panel []float32, depth int) {
	_ = c[:(TileRows-1)*ldc+TileColumns]
	_ = a[:(TileRows-1)*lda+depth]
	_ = panel[:(depth+1)*TileColumns]
}

//go:noescape
func tileAVX512(c *float32, ldc int, a *float32, lda int, panel *float32, depth int)

//go:noescape
func tileAVX2(c *float32, ldc int, a *float32, lda int, panel *float32, depth int)
