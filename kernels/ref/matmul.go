package ref

// Linear computes y = x·wᵀ + bias: x is rows × in, w is out × in, bias has out
// elements, y is rows × out.
func Linear(y, x, w, bias []float32, in, out int) {
	for row := range len(x) / in {
		xr := x[row*in : (row+1)*in]
		for o := range out {
			y[row*out+o] = float32(float64(bias[o]) + dot64(xr, w[o*in:(o+1)*in]))
		}
	}
}

// dot64 is the inner product summed in double precision.
func dot64(a, b []float32) (sum float64) {
	b = b[:len(a)]
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}
