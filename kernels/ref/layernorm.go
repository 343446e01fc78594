package ref

import "math"

// LayerNorm replaces every row x of len(gain) elements by
// (x − mean)/√(variance + epsilon)·gain + bias. (Ba et al., arXiv:1607.06450.)
func LayerNorm(xs, gain, bias []float32, epsilon float64) {
	for n := len(gain); len(xs) >= n; xs = xs[n:] {
		layerNormRow(xs[:n], gain, bias[:n], epsilon)
	}
}

func layerNormRow(x, gain, bias []float32, epsilon float64) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		squares += d * d
	}
	scale := 1 / math.Sqrt(squares/float64(len(x))+epsilon)
	for i, v := range x {
		x[i] = float32((float64(v)-mean)*scale)*gain[i] + bias[i]
	}
}
