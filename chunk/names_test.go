package chunk

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	names := Names()
	require.True(t, slices.IsSorted(names))
	require.Len(t, slices.Compact(slices.Clone(names)), len(names))
	for _, name := range names {
		c, err := Named(name)
		require.NoError(t, err)
		require.Equal(t, name, c.Version())
	}
	_, err := Named("markdown/0")
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorContains(t, err, "fixed/1")
}
