package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestLinear(t *testing.T) {
	y := make([]float32, 4)
	Linear(y, []float32{1, 2, 3, 4, 5, 6}, []float32{1, 0, -1, 2, 2, 2}, []float32{10, 100}, 3, 2)
	require.Equal(t, []float32{8, 112, 8, 130}, y)
}

func TestAdd(t *testing.T) {
	y := []float32{1, 2}
	Add(y, []float32{10, -2})
	require.Equal(t, []float32{11, 0}, y)
}

// Values from the definitions, to ten digits by another program.
func TestGELU(t *testing.T) {
	x := []float32{-3, -1, 0, 0.5, 1, 2}
	exact, tanh := append([]float32(nil), x...), append([]float32(nil), x...)
	GELU(exact)
	GELUTanh(tanh)
	require.InDeltaSlice(t, []float32{-0.0040496941, -0.1586552539, 0, 0.3457312306, 0.8413447461, 1.9544997361}, exact, 1e-7)
	require.InDeltaSlice(t, []float32{-0.0036373921, -0.1588080094, 0, 0.3457140098, 0.8411919906, 1.9545976941}, tanh, 1e-7)
}

func TestLayerNorm(t *testing.T) {
	const n = 50
	gain, bias := normals(1, n), normals(2, n)
	x := normals(3, 3*n)
	for i := range x {
		x[i] = x[i]*30 + 1000 // a mean far from zero must not cost precision
	}
	y := append([]float32(nil), x...)
	LayerNorm(y, gain, bias, 1e-5)
	for row := range 3 {
		var sum, squares float64
		for i := range n {
			z := float64(y[row*n+i]-bias[i]) / float64(gain[i])
			sum, squares = sum+z, squares+z*z
		}
		require.InDelta(t, 0, sum/n, 1e-4)
		require.InDelta(t, 1, squares/n, 1e-4)
	}
	constant := []float32{7, 7}
	LayerNorm(constant, []float32{1, 1}, []float32{0.5, -0.5}, 1e-12)
	require.Equal(t, []float32{0.5, -0.5}, constant)
	tiny := []float32{1e-3, -1e-3} // variance 1e-6: epsilon counts
	LayerNorm(tiny, []float32{1, 1}, []float32{0, 0}, 3e-6)
	require.InDeltaSlice(t, []float32{0.5, -0.5}, tiny, 1e-6)
}

func TestSoftmax(t *testing.T) {
	x := []float32{0, float32(math.Log(2)) * 2, float32(math.Log(3)) * 2}
	Softmax(x, 0.5)
	require.InDeltaSlice(t, []float32{1. / 6, 2. / 6, 3. / 6}, x, 1e-7)
	far := []float32{-2e5, -1e5, -1e5}
	Softmax(far, 1)
	require.Equal(t, []float32{0, 0.5, 0.5}, far)
}

func TestAttention(t *testing.T) {
	// One head of two dimensions; the second sequence has one token, which can
	// attend to itself only.
	ln3 := float32(math.Log(3) * math.Sqrt2)
	qkv := []float32{
		1, 0, ln3, 5, 4, 0, // scores ln 3·√2 and 0: weights 3/4 and 1/4
		0, 0, 0, 7, 0, 8, // equal scores
		9, 9, 9, 9, 1, 2,
	}
	dst := make([]float32, 6)
	Attention(dst, qkv, []int{0, 2, 3}, 1, 2)
	require.InDeltaSlice(t, []float32{3, 2, 2, 4, 1, 2}, dst, 1e-6)
}

func TestPool(t *testing.T) {
	x := []float32{1, 2, 3, 4, 5, 9}
	mean, cls := make([]float32, 2), make([]float32, 2)
	MeanPool(mean, x)
	CLSPool(cls, x)
	require.Equal(t, []float32{3, 5}, mean)
	require.Equal(t, []float32{1, 2}, cls)
}

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ v, want []float32 }{
		{[]float32{3, -4}, []float32{0.6, -0.8}},
		{[]float32{0, 0}, []float32{0, 0}},
		{[]float32{1.5e38, 2e38}, []float32{0.6, 0.8}}, // the squares overflow float32
		{[]float32{3e-38, 4e-38}, []float32{0.6, 0.8}},
	} {
		v := append([]float32(nil), c.v...)
		Normalize(v)
		require.InDeltaSlice(t, c.want, v, 1e-7, "%v", c.v)
	}
}

// Values from the definitions, to ten digits by another program.
func TestSiLU(t *testing.T) {
	x := []float32{-3, -1, 0, 0.5, 2, 100, -100}
	SiLU(x)
	require.InDeltaSlice(t, []float32{-0.1422776195, -0.2689414214, 0, 0.3112296656, 1.7615941559, 100, 0}, x, 1e-7)
}

func TestReLUTanhMultiply(t *testing.T) {
	x := []float32{-2, 0, 3}
	ReLU(x)
	require.Equal(t, []float32{0, 0, 3}, x)
	Multiply(x, []float32{5, 6, 0.5})
	require.Equal(t, []float32{0, 0, 1.5}, x)
	Tanh(x)
	require.InDeltaSlice(t, []float32{0, 0, 0.9051482536}, x, 1e-7)
}

// Rotations keep lengths, position 0 changes nothing, and the inner product of
// two rotated vectors depends on the distance of their positions only.
func TestRope(t *testing.T) {
	const positions, size = 50, 8
	cos, sin := RopeTable(positions, size, 10000, 2)
	q, k := normals(1, size), normals(2, size)
	at := func(x []float32, p int) []float32 {
		y := append([]float32(nil), x...)
		Rope(y, cos[p*size/2:][:size/2], sin[p*size/2:][:size/2])
		return y
	}
	require.Equal(t, q, at(q, 0))
	require.InDelta(t, Dot(q, q), Dot(at(q, 31), at(q, 31)), 1e-5)
	require.InDelta(t, Dot(at(q, 3), at(k, 10)), Dot(at(q, 40), at(k, 47)), 1e-5)
	require.Greater(t, math.Abs(float64(Dot(at(q, 3), at(k, 10))-Dot(at(q, 3), at(k, 11)))), 1e-2)
	unit := []float32{0, 1, 0, 0, 0, 0, 0, 0}
	require.InDeltaSlice(t, []float32{0, float32(math.Cos(0.35)), 0, 0, 0, float32(math.Sin(0.35)), 0, 0}, at(unit, 7), 1e-6,
		"plane 1 of 4 turns by 10000^(-1/4) a position, stretched by 2")
}

func TestRelativeBucket(t *testing.T) {
	for distance, want := range map[int]int{
		0: 0, -1: 1, -7: 7, -8: 8, -11: 8, -12: 9, -16: 10, -32: 12, -64: 14, -90: 14, -91: 15, -127: 15, -128: 15, -4000: 15,
		1: 17, 7: 23, 8: 24, 16: 26, 4000: 31,
	} {
		require.Equal(t, want, RelativeBucket(distance, 32), distance)
	}
}
