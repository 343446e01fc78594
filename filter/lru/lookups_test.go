package lru

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookups(t *testing.T) {
	var l Lookups
	for _, hit := range []bool{true, false, true} {
		l.Add(hit)
	}
	hits, misses := l.Count()
	require.Equal(t, uint64(2), hits)
	require.Equal(t, uint64(1), misses)
}
