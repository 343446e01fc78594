package ref

import "math"

// Normalize scales v to unit length, and returns the length that it had. A
// zero vector stays zero.
func Normalize(v []float32) (length float64) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return 0
	}
	length = math.Sqrt(squares)
	scale := 1 / length
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return length
}
