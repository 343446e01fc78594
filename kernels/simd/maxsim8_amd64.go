package simd

//go:noescape
func codeDotAVX2(p *dotArgs)

// narrowAVX2 wants AVX2.
func narrowAVX2() narrowSet {
	n := portableNarrow()
	n.codeDot = codeDotAVX2
	return n
}
