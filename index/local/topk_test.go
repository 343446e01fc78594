package local

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
)

// TestTopK compares with sorting, ties included.
func TestTopK(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 500 {
		best := topK{k: 1 + rng.IntN(20)}
		var all []index.Hit
		for range rng.IntN(60) {
			h := index.Hit{Row: rng.Uint32(), Score: float32(rng.IntN(5))}
			all = append(all, h)
			if best.beats(h.Score) && best.admits(h.Score, h.Row) {
				best.add(h)
			}
		}
		slices.SortFunc(all, compareHits)
		require.Equal(t, all[:min(best.k, len(all))], best.sorted())
	}
}
