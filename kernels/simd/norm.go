package simd

import "sluice/kernels/ref"

// AddNorm adds y to x, whose rows have gain's length, and normalises them as
// ref.LayerNorm does, in float32.
func (s *Set) AddNorm(x, y, gain, bias []float32, epsilon float64) {
	columns := len(gain)
	if len(x) == 0 {
		return
	}
	if columns%64 != 0 || s.narrow.addNorm == nil {
		ref.Add(x, y)
		ref.LayerNorm(x, gain, bias, epsilon)
		return
	}
	_, _ = y[:len(x)], bias[:columns]
	s.narrow.addNorm(x, y, gain, bias, float32(epsilon))
}

// Norm normalises x, whose rows have gain's length, as ref.LayerNorm does, in
// float32.
func (s *Set) Norm(x, gain, bias []float32, epsilon float64) {
	if len(x) == 0 {
		return
	}
	if len(gain)%64 != 0 || s.narrow.norm == nil {
		ref.LayerNorm(x, gain, bias, epsilon)
		return
	}
	s.narrow.norm(x, gain, bias[:len(gain)], float32(epsilon))
}

// Add adds x to y, element by element.
func (s *Set) Add(y, x []float32) {
	x = x[:len(y)]
	if len(y) == 0 || len(y)%16 != 0 || s.narrow.add == nil {
		ref.Add(y, x)
		return
	}
	s.narrow.add(y, x)
}
