package simd

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// attentionCase is attention over one sequence.
type attentionCase struct {
	tokens, size, window int
	distances            bool
}

func TestAttentionWithinWindowsAndByDistances(t *testing.T) {
	cases := []attentionCase{{70, 32, 0, true}, {1, 32, 4, true}, {300, 64, 0, true}, {33, 8, 100, true}, {200, 33, 5, true}}
	for _, window := range []int{1, 8, 31, 32, 33, 64, 150} {
		cases = append(cases, attentionCase{257, 32, window, false})
	}
	everySet(t, func(t *testing.T, s *Set) {
		for _, c := range cases {
			t.Run(fmt.Sprint(c), func(t *testing.T) { c.check(t, s) })
		}
	})
}

// check compares with the definition, and queries by parts with all of them.
func (c attentionCase) check(t *testing.T, s *Set) {
	const before, heads = 7, 2
	hidden, rows := heads*c.size, before+c.tokens
	rounded, x := roundedNormals(rows * 3 * hidden)
	var qkv Rows
	qkv.Reset(BF16, rows, 3*hidden)
	s.SetRows(&qkv, x, 0, rows, false, nil)
	h := Head{From: before, To: rows, Column: c.size, Size: c.size, Hidden: hidden, Window: c.window}
	if c.distances {
		h.Zero = c.tokens + 3
		h.Distances = fencedCopy(t, normals(3, 2*h.Zero+panelColumns))
	}
	together, parts := fenced[float32](t, rows*hidden), make([]float32, rows*hidden)
	var scratch AttentionScratch
	s.Attend(together, &qkv, &h, before, rows, &scratch)
	for from := before; from < rows; {
		to := min(rows, from+1+from%61)
		s.Attend(parts, &qkv, &h, from, to, &scratch)
		from = to
	}
	require.Equal(t, parts, append([]float32{}, together...), "queries by parts")
	for i := range c.tokens {
		for d, want := range c.want(rounded[before*3*hidden:], &h, i) {
			require.InDelta(t, want, together[(before+i)*hidden+h.Column+d], 2e-2, "token %d, element %d", i, d)
		}
	}
}

// want is one query's answer in double precision.
func (c attentionCase) want(qkv []float32, h *Head, query int) []float64 {
	part := func(token, which int) []float32 {
		return qkv[token*3*h.Hidden+which*h.Hidden+h.Column:][:h.Size]
	}
	out, sum := make([]float64, h.Size), 0.0
	for key := range c.tokens {
		if c.window > 0 && max(key-query, query-key) > c.window {
			continue
		}
		score := float64(ref.Dot(part(query, 0), part(key, 1)))
		if c.distances {
			score += float64(h.Distances[h.Zero+key-query])
		}
		p := math.Exp(score / math.Sqrt(float64(h.Size)))
		sum += p
		for d, v := range part(key, 2) {
			out[d] += p * float64(v)
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}

func TestRope(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		for _, half := range []int{4, 16, 17, 32, 48} {
			const heads = 3
			x := fenced[uint16](t, heads*2*half)
			roundGo(x, normals(5, len(x)))
			want := make([]float32, len(x))
			for i, v := range x {
				want[i] = ref.FromBF16(v)
			}
			cos, sin := ref.RopeTable(8, 2*half, 10000, 1)
			cos, sin = fencedCopy(t, cos[7*half:]), fencedCopy(t, sin[7*half:])
			for head := range heads {
				ref.Rope(want[head*2*half:][:2*half], cos, sin)
			}
			s.Rope(x, cos, sin)
			for i, v := range want {
				require.InDelta(t, v, ref.FromBF16(x[i]), 1e-6+math.Abs(float64(v))/250, "half %d, element %d", half, i)
			}
		}
	})
}
