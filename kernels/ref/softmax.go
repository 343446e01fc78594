package ref

import "math"

// Softmax replaces x by exp(scale·x)/Σ exp(scale·x). The largest element is
// subtracted first, so that nothing overflows; scale is positive.
func Softmax(x []float32, scale float32) {
	top := float32(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(scale) * (float64(v) - float64(top)))
		x[i] = float32(e)
		sum += e
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / sum)
	}
}
