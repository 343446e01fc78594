package index

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/kernels/ref"
)

func TestUnitVectors(t *testing.T) {
	given := []float32{3, 4, 0, -1e-38, 3e38, 3e38}
	unit, err := Unit(given, 2)
	require.NoError(t, err)
	half := float32(math.Sqrt(0.5))
	require.InDeltaSlice(t, []float32{0.6, 0.8, 0, -1, half, half}, unit, 1e-6)
	require.Equal(t, []float32{3, 4, 0, -1e-38, 3e38, 3e38}, given, "what was given stays")

	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for what, bad := range map[string][]float32{
		"zeros": {1, 1, 0, 0}, "not a number": {1, nan}, "infinite": {inf, 1}, "half a vector": {1, 2, 3},
	} {
		_, err := Unit(bad, 2)
		require.Error(t, err, what)
	}
	_, err = Unit(nil, 0)
	require.Error(t, err)
}

// The mean's product with a vector is the mean of the products, up to its length.
func TestMeanVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 9).Draw(t, "dims")
		rows := rapid.IntRange(1, 7).Draw(t, "rows")
		x := rapid.SliceOfN(rapid.Float32Range(-1, 1), rows*dims, rows*dims).Draw(t, "x")
		q := rapid.SliceOfN(rapid.Float32Range(-1, 1), dims, dims).Draw(t, "q")
		sums, products := make([]float64, dims), 0.0
		for i, v := range x {
			sums[i%dims] += float64(v)
			products += float64(v) * float64(q[i%dims])
		}
		length := 0.0
		for _, s := range sums {
			length += s * s
		}
		if length < 1e-6 {
			t.Skip("they cancel out")
		}
		require.InDelta(t, products/math.Sqrt(length), ref.Dot(q, Mean(x, dims)), 1e-4)
	})
	require.Equal(t, []float32{0, 0}, Mean([]float32{1, 2, -1, -2}, 2))
}
