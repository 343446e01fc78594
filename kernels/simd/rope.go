package simd

// Rope turns heads of len(cos) planes each, which lie one after another in x,
// as ref.Rope does, and rounds them to bfloat16 again.
func (s *Set) Rope(x []uint16, cos, sin []float32) {
	sin = sin[:len(cos)]
	if len(x)%(2*len(cos)) != 0 {
		panic("simd: numbers are no whole heads")
	}
	s.narrow.rope(x, cos, sin)
}
