package ref

import "math"

// Rope rotates a head's vector x by the angles of a token's position: the
// elements k and k+len(x)/2 are a plane's coordinates, and cos and sin those
// of its angle. (Su et al., arXiv:2104.09864, in the layout of GPT-NeoX.)
func Rope(x, cos, sin []float32) {
	half := len(x) / 2
	a, b := x[:half], x[half:]
	for k := range a {
		a[k], b[k] = float32(a[k]*cos[k])-float32(b[k]*sin[k]), float32(b[k]*cos[k])+float32(a[k]*sin[k])
	}
}

// RopeTable is the cosines and sines of positions × size/2 angles: that of
// plane k at position p is p/stretch·theta^(−2k/size). They are rounded to
// float32 before the functions are taken, as they were when models were trained.
func RopeTable(positions, size int, theta, stretch float64) (cos, sin []float32) {
	half := size / 2
	cos, sin = make([]float32, positions*half), make([]float32, positions*half)
	for k := range half {
		frequency := float32(1/math.Pow(theta, float64(2*k)/float64(size))) / float32(stretch)
		for p := range positions {
			angle := float64(float32(p) * frequency)
			cos[p*half+k], sin[p*half+k] = float32(math.Cos(angle)), float32(math.Sin(angle))
		}
	}
	return cos, sin
}
