package milvus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
)

// A dropped index leaves nothing on any server and no directory; its neighbour
// stays. Where a server cannot be reached the directory stays, so that it is
// known what to remove later.
func TestDrop(t *testing.T) {
	const n = 20
	all := clusters(t, 2)
	made := conformance.NewCorpus(13, 8)
	o, other := optionsAt(t, t.TempDir(), 8), optionsAt(t, t.TempDir(), 8)
	dropped, neighbour := opened(t, all, o), opened(t, all, other)
	corpus(t, dropped, made, n)
	corpus(t, neighbour, made, n)

	for range failuresToOpen {
		all[1].breaker.leave(index.ErrUnavailable)
	}
	require.ErrorIs(t, dropped.Drop(), index.ErrUnavailable)
	require.DirExists(t, o.Dir)
	all[1].breaker.leave(nil)
	require.NoError(t, Remove(t.Context(), all, o))
	left, err := all[0].Collections(t.Context(), o.Name)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, o.Dir)
	_, err = dropped.Reader()
	require.ErrorIs(t, err, index.ErrClosed)

	_, err = dense(t, neighbour, everyone(n), made.Vector(), n)
	require.NoError(t, err)
	require.NoError(t, neighbour.Drop())
	left, err = all[0].Collections(t.Context(), other.Name)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, other.Dir)
}
