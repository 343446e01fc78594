package ref

// Dot returns the inner product of a and b, which must be of equal length.
//
// The order of its additions is fixed: eight running sums over the elements
// i ≡ 0…7 (mod 8), added pairwise, then the tail. The conversions keep a
// compiler from fusing a multiplication with an addition, so the same vectors
// give the same bits on every platform.
func Dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32 // an array would live in memory
	i := 0
	for ; i+8 <= len(a); i += 8 {
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
		s4 += float32(x[4] * y[4])
		s5 += float32(x[5] * y[5])
		s6 += float32(x[6] * y[6])
		s7 += float32(x[7] * y[7])
	}
	sum := ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
	for ; i < len(a); i++ {
		sum += float32(a[i] * b[i])
	}
	return sum
}
