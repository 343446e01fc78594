package ivf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
)

// TestPacked: a set that is searched often enough is packed; what is found
// stays allowed and live, nearly all of the best, and all from a floor on.
func TestPacked(t *testing.T) {
	const rows, dims, k, queries = 20_000, 64, 10, 40
	v := clustered(5, rows, dims)
	s := NewSpace(dims, DefaultRecall)
	x := build(t, s, v, 200)
	rng := rand.New(rand.NewPCG(4, 1))
	words := bitsOf(rows, func(row int) bool { return row%13 == 5 })
	live := bitsOf(rows, func(row int) bool { return row%10 != 0 })
	want := matching(words, live)
	var q Query
	var memory Scratch
	found, reached, allowed := 0, 0, NewAllowed(words)
	for i := range packedAfter + queries {
		query := v.query(rng)
		s.Prepare(&q, query)
		got := slices.Clone(x.Search(&q, allowed, live, k, float32(math.Inf(-1)), &memory))
		require.Equal(t, i >= packedAfter-1, allowed.packing.Load() != nil)
		require.Subset(t, want, got)
		best := v.best(query, k, want)
		if i < packedAfter {
			continue
		}
		floor := ref.Dot(query, v.row(int(best[k/2])))
		above := x.Search(&q, allowed, live, k, floor, &memory)
		require.LessOrEqual(t, len(above), len(got))
		for _, row := range best[:k/2+1] {
			if slices.Contains(above, row) {
				reached++
			}
		}
		for _, row := range best {
			if slices.Contains(got, row) {
				found++
			}
		}
	}
	require.Greater(t, float64(found)/(queries*k), 0.99)
	require.Greater(t, float64(reached)/(queries*(k/2+1)), 0.99)
}

// TestEncodeBytesIsEncode, of what the bytes stand for.
func TestEncodeBytesIsEncode(t *testing.T) {
	const dims, lane, step = 128, 5, 0.01
	rng := rand.New(rand.NewPCG(6, 1))
	for range 50 {
		x, c := make([]byte, dims), make([]byte, dims)
		values, centre := make([]float32, dims), make([]float32, dims)
		for d := range x {
			x[d], c[d] = byte(1+rng.IntN(255)), byte(1+rng.IntN(255))
			values[d], centre[d] = float32(int(x[d])-128)*step, float32(int(c[d])-128)*step
		}
		want, got := make([]byte, ref.CodeBlock(dims)), make([]byte, ref.CodeBlock(dims))
		encode(want, lane, values, centre)
		encodeBytes(got, lane, x, c, step)
		factors := dims / 32 * ref.CodeLanes * 4
		require.Equal(t, want[:factors], got[:factors], "signs")
		for i, f := range as[float32](want[factors:]) {
			require.InDelta(t, f, as[float32](got[factors:])[i], 1e-3*float64(1+max(f, -f)))
		}
	}
}
