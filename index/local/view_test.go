package local

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestViews: a view is that of its own Set, however many were asked for in
// between, and the same for an equal Set.
func TestViews(t *testing.T) {
	seg, err := buildSegment(t.Context(), newCollection(testDims).documents(200), testDims, english(t))
	require.NoError(t, err)
	state := newSnapshot(1, []part{part{seg: seg}.without([]uint32{4})})
	rng := rand.New(rand.NewPCG(1, 9))
	for range 300 {
		n := 1 + rng.IntN(maxViews+8)
		v := state.view(every(n, 200))
		require.Same(t, v, state.view(every(n, 200)))
		visible := every(n, 200)
		rows := uint64(0)
		for slot := range uint32(seg.rows()) {
			admitted := visible.Contains(seg.ordinalOf(slot)) && seg.ordinalOf(slot) != 4
			require.Equal(t, admitted, v.slots[0].has(slot), "every %d, slot %d", n, slot)
			if admitted {
				rows++
			}
		}
		require.Equal(t, rows, v.rows)
	}
	require.Len(t, state.seen.views, maxViews)
}
