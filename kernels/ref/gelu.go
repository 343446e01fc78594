package ref

import "math"

// GELU replaces every x by x·Φ(x), Φ being the normal distribution function:
// x/2·(1 + erf(x/√2)). (Hendrycks and Gimpel, arXiv:1606.08415.)
func GELU(xs []float32) {
	for i, x := range xs {
		xs[i] = float32(0.5 * float64(x) * (1 + math.Erf(float64(x)/math.Sqrt2)))
	}
}

// GELUTanh is the approximation x/2·(1 + tanh(√(2/π)·(x + 0.044715x³))) from
// the same paper. It differs from GELU by up to 5e-4.
func GELUTanh(xs []float32) {
	const c = 2 / math.SqrtPi / math.Sqrt2 // √(2/π)
	for i, v := range xs {
		x := float64(v)
		xs[i] = float32(0.5 * x * (1 + math.Tanh(c*(x+0.044715*x*x*x))))
	}
}
