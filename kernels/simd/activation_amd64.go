package simd

import "math"

// geluConstants are, in the order of the assembly's registers: 1/√2, the bound
// beyond which erf is ±1 in float32, 1, 1/2, and erf(z) ≈ z·P(z²)/Q(z²) from
// the highest power down, P and Q of degree 5. The coefficients are a minimax
// fit of our own on [0, 3.95]; in float32 its error is below 4e-7.
var geluConstants = [16]float32{
	math.Sqrt2 / 2, 3.95, 1, 0.5,
	2.0154150206508348e-06, 0.00028651111642830074, 0.0038802286144346,
	0.05309570953249931, 0.19320224225521088, 1.1283791065216064,
	3.7819441786268726e-05, 0.0011886412976309657, 0.015198182314634323,
	0.11524449288845062, 0.5045531392097473, 1,
}

// softmaxConstants are log₂e, ln 2 in two parts whose sum is more precise than
// one float32, and the Taylor coefficients of exp from 1/7! down to 1. On
// |r| ≤ ln(2)/2 the first term left out is below 6e-9.
var softmaxConstants = [11]float32{
	math.Log2E, 0.693359375, math.Ln2 - 0.693359375,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1,
}

// sigmoidConstants are those of softmax and, after them, the bound beyond which
// σ is 0 or 1 in float32.
var sigmoidConstants = [12]float32{
	math.Log2E, 0.693359375, math.Ln2 - 0.693359375,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1, 110,
}

// By the sigmoid σ: GELUTanh is x·σ(2√(2/π)·(x + 0.044715x³)), SiLU x·σ(x).
const (
	geluTanhLinear = 4 / math.SqrtPi / math.Sqrt2
	geluTanhCubic  = geluTanhLinear * 0.044715
)

func geluTanh512(x []float32) {
	if len(x) > 0 {
		sigmoidAVX512(&x[0], len(x), geluTanhLinear, geluTanhCubic, &sigmoidConstants)
	}
}

func silu512(x []float32) {
	if len(x) > 0 {
		sigmoidAVX512(&x[0], len(x), 1, 0, &sigmoidConstants)
	}
}

func gelu512(x []float32) {
	if len(x) > 0 {
		geluAVX512(&x[0], len(x), &geluConstants)
	}
}

func softmax512(x []float32, scale float32) {
	if len(x) > 0 {
		softmaxAVX512(&x[0], len(x), scale, &softmaxConstants)
	}
}

//go:noescape
func geluAVX512(x *float32, n int, constants *[16]float32)

//go:noescape
func softmaxAVX512(x *float32, n int, scale float32, constants *[11]float32)

// sigmoidAVX512 replaces every x by x·σ(linear·x + cubic·x³).
//
//go:noescape
func sigmoidAVX512(x *float32, n int, linear, cubic float32, constants *[12]float32)
