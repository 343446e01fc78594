package local

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPostings compares random lists and spans with a plain filter.
func TestPostings(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var list, want []posting
		for slot := range uint32(3000) {
			if rng.IntN(1+int(seed)%40) == 0 {
				list = append(list, posting{slot, rng.Uint32N(300) + 1})
			}
		}
		var spans []span
		for at := uint32(0); at < 3000; at += rng.Uint32N(400) {
			s := span{at, at + 1 + rng.Uint32N(200)}
			spans, at = append(spans, s), s.hi
		}
		for _, p := range list {
			if slices.ContainsFunc(spans, func(s span) bool { return s.lo <= p.slot && p.slot < s.hi }) {
				want = append(want, p)
			}
		}
		got, err := postingList{data: appendPostings(nil, list)}.within(spans, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
	}
}
