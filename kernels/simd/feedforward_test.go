package simd

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// feedForward is a random block and its input.
type feedForward struct {
	x             Rows
	up, down      *Weights
	gate          *Weights // nil: there is none
	rows, columns int
}

func newFeedForward(s *Set, number Number, rows, hidden, middle int) *feedForward {
	f := &feedForward{rows: rows, columns: hidden}
	f.up = pack(number, normals(1, middle*hidden), normals(2, middle), hidden, true)
	f.down = pack(number, normals(3, hidden*middle), normals(4, hidden), middle, true)
	f.x.Reset(number, rows, hidden)
	s.SetRows(&f.x, normals(5, rows*hidden), 0, rows, true, make([]float32, hidden))
	return f
}

func newGated(s *Set, number Number, rows, hidden, middle int) *feedForward {
	f := newFeedForward(s, number, rows, hidden, middle)
	f.gate = pack(number, normals(6, middle*hidden), normals(7, middle), hidden, true)
	return f
}

// Fused or by passes, the numbers between the products are the same bits.
func TestFeedForwardFusedIsByPasses(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for rows := range 49 {
			f := newFeedForward(s, Int8, rows, 128, 384)
			var scratch FeedForwardScratch
			got := fenced[float32](t, rows*f.columns)
			s.FeedForward(got, &f.x, f.gate, f.up, f.down, 0, rows, nil, &scratch)
			require.Equal(t, f.byPasses(s), append([]float32{}, got...), "%d rows", rows)
		}
	})
}

func (f *feedForward) byPasses(s *Set) []float32 {
	var scratch FeedForwardScratch
	out := make([]float32, f.rows*f.columns)
	scratch.inner.Reset(f.up.number, f.rows, f.up.Columns)
	if f.rows > 0 {
		s.upByPasses(&f.x, f.up, 0, f.rows, nil, &scratch)
		s.Product(out, &scratch.inner, f.down, 0, f.rows, false, &scratch.products)
	}
	return out
}

func TestFeedForwardActivations(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, number := range []Number{Int8, BF16} {
			for _, shape := range [][2]int{{48, 100}, {128, 256}} {
				f := newFeedForward(s, number, 53, shape[0], shape[1])
				gelu, other := make([]float32, 53*shape[0]), make([]float32, 53*shape[0])
				var scratch FeedForwardScratch
				s.FeedForward(gelu, &f.x, f.gate, f.up, f.down, 0, 53, nil, &scratch)
				s.FeedForward(other, &f.x, f.gate, f.up, f.down, 0, 53, ref.GELU, &scratch)
				require.Less(t, distance(gelu, other), 0.02, "%d %v", number, shape)
			}
		}
	})
}

// With gates, the numbers between the products are those of two products.
func TestFeedForwardGated(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, number := range []Number{Int8, BF16} {
			for _, other := range []func([]float32){nil, s.SiLU} {
				for _, shape := range [][2]int{{48, 100}, {128, 256}} {
					f := newGated(s, number, 53, shape[0], shape[1])
					got := fenced[float32](t, 53*f.columns)
					var scratch FeedForwardScratch
					s.FeedForward(got, &f.x, f.gate, f.up, f.down, 0, 53, other, &scratch)
					require.Less(t, distance(f.gatedByPasses(s, other), got), 1e-6, "%d %v", number, shape)
				}
			}
		}
	})
}

func (f *feedForward) gatedByPasses(s *Set, other func([]float32)) []float32 {
	var scratch Scratch
	gates, middle, out := make([]float32, f.rows*f.up.Columns), make([]float32, f.rows*f.up.Columns), make([]float32, f.rows*f.columns)
	s.Product(gates, &f.x, f.gate, 0, f.rows, other == nil, &scratch)
	if other != nil {
		other(gates)
	}
	s.Product(middle, &f.x, f.up, 0, f.rows, false, &scratch)
	ref.Multiply(middle, gates)
	var inner Rows
	inner.Reset(f.up.number, f.rows, f.up.Columns)
	s.SetRows(&inner, middle, 0, f.rows, true, make([]float32, f.up.Columns))
	s.Product(out, &inner, f.down, 0, f.rows, false, &scratch)
	return out
}

// distance is the relative one of two vectors.
func distance(a, b []float32) float64 {
	var difference, length float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		difference += d * d
		length += float64(a[i]) * float64(a[i])
	}
	return math.Sqrt(difference / length)
}

// Contract: neither what a row is computed with nor where blocks begin changes it.
func TestFeedForwardRowsAreIndependent(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, number := range []Number{Int8, BF16} {
			newFeedForward(s, number, 77, 128, 256).checkRows(t, s)
			newGated(s, number, 77, 128, 256).checkRows(t, s)
		}
	})
}

func (f *feedForward) checkRows(t *testing.T, s *Set) {
	var scratch FeedForwardScratch
	together, parts := make([]float32, f.rows*f.columns), make([]float32, f.rows*f.columns)
	s.FeedForward(together, &f.x, f.gate, f.up, f.down, 0, f.rows, nil, &scratch)
	for from := 0; from < f.rows; {
		to := min(f.rows, from+1+from%23)
		s.FeedForward(parts[from*f.columns:], &f.x, f.gate, f.up, f.down, from, to, nil, &scratch)
		from = to
	}
	require.Equal(t, together, parts)
}

// Nothing is allocated once the scratch has grown.
func TestNarrowAllocations(t *testing.T) {
	s := Best()
	for _, number := range []Number{Int8, BF16} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			f, gated := newFeedForward(s, number, 60, 128, 256), newGated(s, number, 60, 128, 256)
			var scratch FeedForwardScratch
			var attention AttentionScratch
			var qkv Rows
			qkv.Reset(BF16, 60, 3*64)
			out, angles, distances := make([]float32, 60*128), make([]float32, 16), make([]float32, 150)
			x, gain, row := make([]float32, 60*128), make([]float32, 128), make([]float32, 128)
			table := PackTable(number, make([]float32, 128), 128)
			require.Zero(t, testing.AllocsPerRun(5, func() {
				s.Lookup(row, table, 0)
				s.Add(row, gain)
				s.AddNorm(x, out, gain, gain, 1e-12)
				s.SetRows(&f.x, x, 0, 60, true, row)
				s.FeedForward(out, &f.x, f.gate, f.up, f.down, 0, 60, nil, &scratch)
				s.FeedForward(out, &gated.x, gated.gate, gated.up, gated.down, 0, 60, s.SiLU, &scratch)
				s.Norm(x, gain, gain, 1e-12)
				s.Rope(qkv.BF16(0, 1)[:64], angles, angles)
				s.Attend(out, &qkv, &Head{From: 0, To: 60, Column: 32, Size: 32, Hidden: 64}, 0, 60, &attention)
				s.Attend(out, &qkv, &Head{From: 0, To: 60, Size: 32, Hidden: 64, Window: 7, Distances: distances, Zero: 59}, 0, 60, &attention)
			}))
		})
	}
}
