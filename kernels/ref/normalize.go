package ref

import "math"

// Normalize scales v to unit length. A zero vector stays zero.
func Normalize(v []float32) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return
	}
	scale := 1 / math.Sqrt(squares)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
}
