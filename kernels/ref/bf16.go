package ref

import "math"

// BF16 rounds x to the nearest bfloat16, ties to even. Subnormal numbers
// become zero, as CPUs do it.
func BF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if bits&0x7f800000 == 0 {
		return uint16(bits >> 16 & 0x8000)
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// FromBF16 is the number that bits stand for.
func FromBF16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// DotBF16 is the inner product of two bfloat16 vectors of equal length.
func DotBF16(a, b []uint16) (sum float64) {
	b = b[:len(a)]
	for i, v := range a {
		sum += float64(FromBF16(v)) * float64(FromBF16(b[i]))
	}
	return sum
}
