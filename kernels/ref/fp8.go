package ref

import "math"

// MaxE4M3 is the largest number in FP8 of four bits of exponent and three of
// fraction (OCP 8-bit Floating Point Specification, 1.0).
const MaxE4M3 = 448

// RoundE4M3 rounds each element of x to what FP8 makes of it with one scale for
// all, by which the largest magnitude becomes MaxE4M3. Ties go to even.
func RoundE4M3(x []float32) {
	scale := largestMagnitude(x) / MaxE4M3
	for i, v := range x {
		x[i] = roundE4M3(v/scale) * scale
	}
}

// roundE4M3 rounds v, at most MaxE4M3 in magnitude, to a multiple of an eighth
// of its power of two, which is 2⁻⁶ at least: to a sum whose last bit is that.
func roundE4M3(v float32) float32 {
	exponent := max(math.Float32bits(v)>>23&0xff, 127-6)
	magic := math.Float32frombits((exponent+20)<<23 | 1<<22)
	return float32(v+magic) - magic
}
