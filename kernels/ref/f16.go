package ref

import "math"

// MaxF16 is the largest number that is an IEEE half.
const MaxF16 = 65504

// F16 rounds x to the nearest IEEE half, ties to even: to a subnormal below
// 2⁻¹⁴, and to infinity from MaxF16 + 16 on.
func F16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign, size := uint16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case size > 0x7f800000: // NaN
		return sign | 0x7e00
	case size >= 0x47800000: // 2¹⁶
		return sign | 0x7c00
	case size < 0x38800000: // 2⁻¹⁴: multiples of 2⁻²⁴, which the sum's last bits are
		return sign | uint16(math.Float32bits(math.Float32frombits(size)+0.5)-0x3f000000)
	}
	size -= 112 << 23 // from float32's bias of exponents to a half's
	return sign | uint16((size+0xfff+size>>13&1)>>13)
}
