package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func randomRow(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// Rotated by rotated is unrotated by unrotated, and outliers are spread.
func TestRotationKeepsProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, depth := range []int{1, 2, 3, 32, 48, 96, 128, 384, 1000} {
		x, w := randomRow(r, depth), randomRow(r, depth)
		x[depth/2] = 100
		want := dot64(x, w)
		Rotate(x)
		RotateWeights(w)
		require.InDelta(t, want, dot64(x, w), 1e-3, "depth %d", depth)
		if depth%128 == 0 {
			require.Less(t, float64(largestMagnitude(w)), 5.0)
			touched := 0
			for _, v := range x {
				if math.Abs(float64(v)) > 50 {
					touched++
				}
			}
			require.Equal(t, 32, touched, "depth %d", depth)
		}
	}
}

func TestQuantizeIsWithinHalfAStep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x := randomRow(r, 500)
	x[7] *= -20
	q, w := make([]byte, 500), make([]int8, 500)
	scale := Quantize(q, x)
	require.Equal(t, scale, QuantizeWeights(w, x))
	for i, v := range x {
		require.InDelta(t, v, float32(int(q[i])-128)*scale, float64(scale)/2*1.0001)
		require.Equal(t, int(q[i])-128, int(w[i]))
	}
	require.Equal(t, byte(1), q[7], "the largest is 127 steps")
	require.EqualValues(t, 127*127, DotInt8(q[7:8], w[7:8]))
}

func TestQuantizeZeros(t *testing.T) {
	q := make([]byte, 3)
	scale := Quantize(q, []float32{0, 0, 1e-40})
	require.Equal(t, []byte{128, 128, 128}, q)
	require.Positive(t, scale)
}

func TestBF16RoundsToNearestEven(t *testing.T) {
	for x, want := range map[float32]float32{
		1: 1, -2.5: -2.5, 1 + 1./256: 1, 1 + 3./256: 1 + 1./64, 1 + 1./256 + 1e-6: 1 + 1./128, 1e-40: 0, 3.4e38: float32(math.Inf(1)),
	} {
		require.Equal(t, want, FromBF16(BF16(x)), "%v", x)
	}
	require.Equal(t, uint16(0x8000), BF16(-1e-40))
	require.Equal(t, 6.0, DotBF16([]uint16{BF16(1), BF16(2)}, []uint16{BF16(2), BF16(2)}))
}
