package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"

	"sluice/gpu/golden"
	"sluice/kernels/ref"
)

// compute is what o makes of x, of some shape, and others.
func compute(t *testing.T, o *operation, x []float32, shape []int, others ...gorgonia.Value) []float32 {
	t.Helper()
	v, err := o.Do(append([]gorgonia.Value{matrix(x, shape...)}, others...)...)
	require.NoError(t, err)
	return v.Data().([]float32)
}

// Gorgonia's own softmax gives Inf and NaN here.
func TestSoftmaxOfRowsFarApart(t *testing.T) {
	x := []float32{200, 0, 0, 0, -200, -200, 300, -100, float32(math.Inf(-1))}
	got := compute(t, softmax, x, []int{1, 3, 3})
	golden.RequireNear(t, []float32{1, 0, 0, 1, 0, 0, 1, 0, 0}, got, 1e-30, "softmax")
	require.EqualValues(t, 200, x[0], "the operand stays")
}

// The operations and the plain references of kernels/ref, written apart.
func TestOperationsMeetTheReferences(t *testing.T) {
	r := random(t)
	numbers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64() * 3)
		}
		return x
	}
	x, gain, bias := numbers(6*10), numbers(10), numbers(10)
	shape := []int{2, 3, 10}
	check := func(o *operation, reference func(x []float32), others ...gorgonia.Value) {
		want := append([]float32(nil), x...)
		reference(want)
		golden.RequireNear(t, want, compute(t, o, x, shape, others...), 3e-6, o.name)
	}
	check(gelu, ref.GELU)
	check(softmax, func(x []float32) {
		for ; len(x) > 0; x = x[10:] {
			ref.Softmax(x[:10], 1)
		}
	})
	check(layerNorm(1e-5), func(x []float32) { ref.LayerNorm(x, gain, bias, 1e-5) }, matrix(gain, 1, 10), matrix(bias, 1, 10))
	cos, sin := ref.RopeTable(3, 10, 100, 1)
	check(rotary(3), func(x []float32) {
		for row := range 6 {
			position := row % 3 * 5
			ref.Rope(x[row*10:][:10], cos[position:][:5], sin[position:][:5])
		}
	}, matrix(cos, 1, 3, 5), matrix(sin, 1, 3, 5))
}
