package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every half comes back, and a number between two goes to the nearer, or to the
// even one.
func TestF16RoundsToNearestEven(t *testing.T) {
	for bits := range uint16(0x7c00) { // finite, not negative
		x := fromF16(bits)
		require.Equal(t, bits, F16(x), "%x", bits)
		require.Equal(t, bits|0x8000, F16(-x), "-%x", bits)
		next := float64(MaxF16 + 32)
		if bits < 0x7bff {
			next = float64(fromF16(bits + 1))
		}
		middle := float32((float64(x) + next) / 2) // exact: a half has eleven bits
		require.Equal(t, bits+bits&1, F16(middle), "after %x", bits)
		require.Equal(t, bits, F16(math.Nextafter32(middle, 0)), "after %x", bits)
		require.Equal(t, bits+1, F16(math.Nextafter32(middle, math.MaxFloat32)), "after %x", bits)
	}
	infinite := float32(math.Inf(1))
	require.EqualValues(t, 0x7c00, F16(infinite))
	require.EqualValues(t, 0x7c00, F16(math.MaxFloat32))
	require.Equal(t, infinite, fromF16(0x7c00))
	nan := fromF16(F16(float32(math.NaN())))
	require.NotEqual(t, nan, nan)
}

// The error of a product of rounded numbers is within what gpu/cuda says of it.
func TestF16Error(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		x := float32(random.NormFloat64()) * float32(math.Exp2(float64(random.IntN(30)-20)))
		off := math.Abs(float64(fromF16(F16(x))) - float64(x))
		require.LessOrEqual(t, off, math.Abs(float64(x))*0x1p-11+0x1p-25, "%v", x)
	}
}

// fromF16 is the number that bits stand for.
func fromF16(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits&0x8000)<<16, uint32(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
