package ref

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each number that a byte can be stays; what lies between goes to the nearer,
// or to the one whose last bit is 0.
func TestRoundE4M3(t *testing.T) {
	number := func(bits int) float32 {
		exponent, fraction := bits>>3, float64(bits&7)/8
		if exponent == 0 {
			return float32(math.Ldexp(fraction, -6))
		}
		return float32(math.Ldexp(1+fraction, exponent-7))
	}
	require.EqualValues(t, MaxE4M3, number(0x7e))
	for bits := range 0x7e {
		x, next := number(bits), number(bits+1)
		middle, even := (x+next)/2, number(bits+bits&1)
		for _, sign := range []float32{1, -1} {
			require.Equal(t, sign*x, roundE4M3(sign*x), "%x", bits)
			require.Equal(t, sign*even, roundE4M3(sign*middle), "after %x", bits)
			require.Equal(t, sign*x, roundE4M3(sign*math.Nextafter32(middle, 0)), "after %x", bits)
			require.Equal(t, sign*next, roundE4M3(sign*math.Nextafter32(middle, MaxE4M3)), "after %x", bits)
		}
	}
	v := []float32{2, -1, 0.0105, 0}
	RoundE4M3(v)
	require.InDeltaSlice(t, []float32{2, -1, 2.25 / 448 * 2, 0}, v, 1e-8)
}
