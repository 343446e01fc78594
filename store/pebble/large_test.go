package pebble

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/store"
)

// Pebble takes a batch of more than half a memtable apart and leaves it empty:
// such a write, too, is durable when it is acknowledged, and in the feed.
func TestWritesLargerThanAMemtable(t *testing.T) {
	files := vfs.NewCrashableMem()
	s, err := Open("store", Options{FS: files, memTableSize: 256 << 10})
	require.NoError(t, err)
	c, _, err := s.CreateCollection(t.Context(), "acme", "docs", store.Settings{})
	require.NoError(t, err)
	want := testVersion("large", strings.Repeat("harbour ", 20_000), 40_000)
	require.Greater(t, 4*len(want.Vectors), 2*(256<<10))

	r, err := s.Commit(t.Context(), c.ID, want)
	require.NoError(t, err)

	crashed := files.CrashClone(vfs.CrashCloneCfg{})
	epoch, err := s.Epoch(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.Epoch, epoch)
	require.NoError(t, s.Close())

	s, err = Open("store", Options{FS: crashed, memTableSize: 256 << 10})
	require.NoError(t, err)
	content, err := s.Content(t.Context(), c.ID, r.Ordinal, true)
	require.NoError(t, err)
	require.Equal(t, want.Text, content.Text)
	require.Equal(t, want.Vectors, content.Vectors)
	epoch, err = s.Epoch(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.Epoch, epoch)
	require.NoError(t, s.Close())
}
