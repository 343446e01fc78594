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
