package ref

import "math"

// SiLU replaces every x by x/(1 + exp(−x)). (Elfwing et al., arXiv:1702.03118.)
func SiLU(xs []float32) {
	for i, x := range xs {
		xs[i] = float32(float64(x) / (1 + math.Exp(-float64(x))))
	}
}

// ReLU replaces every negative x by zero.
func ReLU(xs []float32) {
	for i, x := range xs {
		xs[i] = max(0, x)
	}
}

// Tanh replaces every x by its hyperbolic tangent.
func Tanh(xs []float32) {
	for i, x := range xs {
		xs[i] = float32(math.Tanh(float64(x)))
	}
}

// Multiply multiplies y by x, element by element.
func Multiply(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] *= x[i]
	}
}
