package local

import (
	"fmt"
	"maps"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/conformance"
)

// TestWithoutVectors: rows without vectors are searched by their words alone,
// through fresh, sealed and merged states and when opened again, and are told
// as what was put.
func TestWithoutVectors(t *testing.T) {
	const seed, ordinals = 5, 30
	options := Options{Analyzer: english(t), FreshRows: 20, FS: vfs.NewMem()}
	c, want := conformance.NewCorpus(seed, 8), map[uint32][]uint32{}
	ix, err := Open("/index", options)
	require.NoError(t, err)
	for epoch := uint64(1); epoch <= 40; epoch++ {
		b := c.Batch(epoch, ordinals)
		for _, ordinal := range b.Delete {
			delete(want, ordinal)
		}
		for i, d := range b.Put {
			delete(want, d.Ordinal)
			for j := range d.Rows {
				b.Put[i].Rows[j].Vector = nil
				want[d.Ordinal] = append(want[d.Ordinal], d.Rows[j].Row)
			}
		}
		require.NoError(t, ix.Apply(t.Context(), b))
		if epoch%10 == 0 {
			require.NoError(t, ix.Flush(t.Context()))
			require.NoError(t, ix.Close())
			ix, err = Open("/index", options)
			require.NoError(t, err)
		}
		requireRows(t, ix, want, c.Set(ordinals), fmt.Sprintf("seed %d, epoch %d", seed, epoch))
	}
	require.NoError(t, ix.Close())
	report, err := Check("/index", options.FS)
	require.NoError(t, err, "%+v", report)
}

func requireRows(t *testing.T, ix *Index, all map[uint32][]uint32, allowed filter.Set, where string) {
	t.Helper()
	r, err := ix.Snapshot()
	require.NoError(t, err)
	defer r.Close()
	want, n := maps.Clone(all), 0
	maps.DeleteFunc(want, func(ordinal uint32, _ []uint32) bool { return !allowed.Contains(ordinal) })
	require.NoError(t, r.Documents(allowed, func(ordinal uint32, rows []uint32) bool {
		require.Equal(t, want[ordinal], rows, "%s: document %d", where, ordinal)
		for _, row := range rows {
			require.True(t, r.Holds(index.Hit{Row: row, Ordinal: ordinal}))
			require.False(t, r.Holds(index.Hit{Row: row, Ordinal: ordinal + 1}))
		}
		n += len(rows)
		delete(want, ordinal)
		return true
	}))
	require.Empty(t, want, where)
	rows, err := r.Rows(allowed)
	require.NoError(t, err)
	require.Equal(t, n, rows, where)
}
