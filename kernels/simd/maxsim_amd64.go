package simd

import "sluice/kernels/ref"

func maxSim512(tables []float32, words int, codes []byte) lanes {
	best := worst
	if tokens := len(codes) / ref.CodeBytes(16*words); tokens > 0 {
		maxSimAVX512(&best, &tables[0], words, &codes[0], tokens)
	}
	return best
}

func maxSim256(tables []float32, words int, codes []byte) lanes {
	best := worst
	if tokens := len(codes) / ref.CodeBytes(16*words); tokens > 0 {
		maxSimAVX2(&best, &tables[0], words, &codes[0], tokens)
	}
	return best
}

//go:noescape
func maxSimAVX512(best *lanes, tables *float32, words int, codes *byte, tokens int)

//go:noescape
func maxSimAVX2(best *lanes, tables *float32, words int, codes *byte, tokens int)
