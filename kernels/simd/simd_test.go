package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/kernels/ref"
)

func everySet(t *testing.T, check func(t *testing.T, s *Set)) {
	for _, s := range Supported() {
		t.Run(s.Level, func(t *testing.T) { check(t, s) })
	}
}

// normals fills a slice with normal numbers, one in fifty an outlier of 20×.
func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.IntN(50) == 0 {
			x[i] *= 20
		}
	}
	return x
}

// guard surrounds a matrix with numbers that no kernel may touch.
const guard = float32(12345)

func guarded(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = guard
	}
	return x
}

func TestMatMulIsLinear(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		rapid.Check(t, func(rt *rapid.T) {
			rows := rapid.IntRange(1, 40).Draw(rt, "rows")
			depth := rapid.IntRange(1, 70).Draw(rt, "depth")
			columns := rapid.IntRange(1, 100).Draw(rt, "columns")
			lda := depth + rapid.IntRange(0, 5).Draw(rt, "gap in a")
			ldc := columns + rapid.IntRange(0, 5).Draw(rt, "gap in c")
			seed := rapid.Uint64().Draw(rt, "seed")
			w, bias, a := normals(seed, columns*depth), normals(seed+1, columns), normals(seed+2, rows*lda)
			var m Matrix
			m.Reset(depth, columns)
			m.SetTransposed(0, columns, w, depth)
			m.SetBias(0, bias)
			c := guarded(rows * ldc)
			s.MatMul(c, ldc, a, lda, rows, &m, 0, m.Panels(), &Edge{})
			for row := range rows {
				want := make([]float32, columns)
				ref.Linear(want, a[row*lda:][:depth], w, bias, depth, columns)
				for i, v := range c[row*ldc:][:ldc] {
					if i >= columns {
						require.Equal(rt, guard, v, "row %d: written beyond the columns", row)
						continue
					}
					require.InDelta(rt, want[i], v, tolerance(a[row*lda:][:depth], w[i*depth:][:depth])+3e-7*math.Abs(float64(want[i])), "row %d, column %d", row, i)
				}
			}
		})
	})
}

// tolerance is the rounding that a float32 sum of products can gather.
func tolerance(a, b []float32) float64 {
	var magnitude float64
	for i := range a {
		magnitude += math.Abs(float64(a[i]) * float64(b[i]))
	}
	return 1e-6*magnitude + 1e-5
}

// Contract: a row's bits do not depend on its place among other rows, nor a
// panel's on which panels are computed with it.
func TestMatMulRowsAreIndependent(t *testing.T) {
	const depth, columns, rows = 77, 90, 31
	everySet(t, func(t *testing.T, s *Set) {
		var m Matrix
		m.Reset(depth, columns)
		m.SetTransposed(0, columns, normals(1, depth*columns), depth)
		m.SetBias(0, normals(2, columns))
		a := normals(3, rows*depth)
		together := make([]float32, rows*columns)
		s.MatMul(together, columns, a, depth, rows, &m, 0, m.Panels(), &Edge{})
		for row := range rows {
			alone := make([]float32, columns)
			for p := range m.Panels() {
				s.MatMul(alone, columns, a[row*depth:], depth, 1, &m, p, p+1, &Edge{})
			}
			require.Equal(t, together[row*columns:][:columns], alone, "row %d", row)
		}
	})
}

func TestSetRowsIsTheTransposeOfSetTransposed(t *testing.T) {
	const depth, columns = 9, 45
	w := normals(4, depth*columns)
	transposed := make([]float32, len(w))
	for k := range depth {
		for n := range columns {
			transposed[n*depth+k] = w[k*columns+n]
		}
	}
	var a, b Matrix
	a.Reset(depth, columns)
	a.SetRows(w, columns)
	b.Reset(30, 70) // dirty memory, to be reused
	b.SetBias(0, normals(5, 70))
	b.Reset(depth, columns)
	b.SetTransposed(0, 20, transposed, depth)
	b.SetTransposed(20, columns-20, transposed[20*depth:], depth)
	require.Equal(t, a, Matrix{depth, columns, b.data[:len(b.data):len(b.data)]})
}

func TestActivations(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1e-30, -1e-30, 5.6, -5.6, 100, -100, 3e38, -3e38}
	everySet(t, func(t *testing.T, s *Set) {
		for name, f := range map[string][2]func([]float32){
			"gelu": {ref.GELU, s.GELU}, "gelu_tanh": {ref.GELUTanh, s.GELUTanh}, "silu": {ref.SiLU, s.SiLU},
		} {
			for n := range 70 {
				x := append(normals(uint64(n), n), special...)
				want, got := append([]float32(nil), x...), append(append([]float32(nil), x...), guard)
				f[0](want)
				f[1](got[:len(x)])
				require.Equal(t, guard, got[len(x)])
				for i := range x {
					require.InDelta(t, want[i], got[i], 3e-7*math.Max(1, math.Abs(float64(x[i]))), "%s(%v) of %d", name, x[i], len(x))
				}
			}
		}
	})
}

func TestSoftmax(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for n := 1; n < 300; n++ {
			x := normals(uint64(n), n)
			want, got := append([]float32(nil), x...), append(append([]float32(nil), x...), guard)
			ref.Softmax(want, 0.3)
			s.Softmax(got[:n], 0.3)
			require.Equal(t, guard, got[n])
			var sum float64
			for i := range x {
				require.InDelta(t, want[i], got[i], 3e-7, "element %d of %d", i, n)
				sum += float64(got[i])
			}
			require.InDelta(t, 1, sum, 1e-5)
		}
	})
}

// Scores far apart, all negative, or huge: the maximum is taken by value.
func TestSoftmaxExtremes(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, x := range [][]float32{{-3e38, 3e38}, {-1000, -1001, -5000}, {1e30, 1e30}, {88, -88, 0}, {-7}} {
			want, got := append([]float32(nil), x...), append([]float32(nil), x...)
			ref.Softmax(want, 1)
			s.Softmax(got, 1)
			require.InDeltaSlice(t, want, got, 3e-7, "%v", x)
		}
	})
}

func BenchmarkMatMul(b *testing.B) {
	const rows, depth, columns = 120, 384, 1536
	for _, s := range Supported() {
		b.Run(fmt.Sprintf("%s/%dx%dx%d", s.Level, rows, depth, columns), func(b *testing.B) {
			var m Matrix
			m.Reset(depth, columns)
			m.SetTransposed(0, columns, normals(1, depth*columns), depth)
			a, c := normals(3, rows*depth), make([]float32, rows*columns)
			var edge Edge
			for b.Loop() {
				s.MatMul(c, columns, a, depth, rows, &m, 0, m.Panels(), &edge)
			}
			b.ReportMetric(2*rows*depth*columns*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
