package model

import "math"

// Shorten keeps the first dimensions of a vector and gives them unit length
// again, in place: what models trained for it (Kusupati et al.,
// arXiv:2205.13147) lose little by. dimensions is from 1 to len(vector).
func Shorten(vector []float32, dimensions int) []float32 {
	vector = vector[:dimensions:dimensions]
	var squares float64
	for _, x := range vector {
		squares += float64(x) * float64(x)
	}
	if squares > 0 {
		scale := 1 / math.Sqrt(squares)
		for i, x := range vector {
			vector[i] = float32(float64(x) * scale)
		}
	}
	return vector
}
