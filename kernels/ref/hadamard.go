package ref

import "math"

// Hadamard multiplies x, whose length is a power of two, element by element
// with signs and then by the orthonormal Walsh–Hadamard matrix. The order of
// its operations is fixed: the same bits come out on every platform.
func Hadamard(x, signs []float32) {
	for i, sign := range signs[:len(x)] {
		x[i] *= sign
	}
	for stride := len(x) / 2; stride > 0; stride /= 2 {
		for start := 0; start < len(x); start += 2 * stride {
			low, high := x[start:start+stride], x[start+stride:start+2*stride]
			for i, a := range low {
				b := high[i]
				low[i], high[i] = a+b, a-b
			}
		}
	}
	scale := float32(1 / math.Sqrt(float64(len(x))))
	for i := range x {
		x[i] *= scale
	}
}
