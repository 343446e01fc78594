package local

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGallop compares with a plain search.
func TestGallop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for range 5000 {
		n := rng.IntN(70)
		from, target := rng.IntN(n+1), rng.IntN(80)
		want := min(max(from, target), n)
		require.Equal(t, want, gallop(from, n, func(i int) bool { return i >= target }), "from %d, n %d, target %d", from, n, target)
	}
}

// TestLookup finds every term and document again, and nothing else.
func TestLookup(t *testing.T) {
	seg, err := buildSegment(t.Context(), newCollection(testDims).documents(60), testDims, english(t))
	require.NoError(t, err)
	for i := range seg.terms() {
		term, want := seg.term(i)
		got, err := seg.lookup(string(term))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, i, seg.seekTerm(string(term)))
		missing, err := seg.lookup(string(term) + "x")
		require.NoError(t, err)
		require.Zero(t, missing.count)
	}
	for i := range seg.documents() {
		for slot := seg.document(i).lo; slot < seg.document(i).hi; slot++ {
			require.Equal(t, seg.ordinal(i), seg.ordinalOf(slot))
		}
	}
}
