package local

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
)

// TestTopK compares with sorting, ties included.
func TestTopK(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 10))
	for range 500 {
		best := topK{k: 1 + rng.IntN(40)}
		var all []index.Hit
		for row := range uint32(rng.IntN(1200)) {
			h := index.Hit{Row: row * 7 % 1201, Ordinal: row, Score: float32(rng.IntN(60)-30) / 3}
			all = append(all, h)
			best.add(contender{keyOf(h.Score, h.Row), row})
			if rng.IntN(300) == 0 {
				best.settle()
			}
		}
		slices.SortFunc(all, compareHits)
		want := append([]index.Hit{}, all[:min(best.k, len(all))]...)
		require.Equal(t, want, best.hits(func(slot uint32) uint32 { return slot }))
	}
}

func compareHits(a, b index.Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
}
