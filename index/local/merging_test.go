package local

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
)

// TestChangesDuringMerge: what is put and deleted while a merge writes its
// segment, flushed or not, stays so when it is switched in.
func TestChangesDuringMerge(t *testing.T) {
	for seed := range uint64(20) {
		disk, c := vfs.NewMem(), conformance.NewCorpus(seed, testDims)
		ix, err := Open("index", testOptions(t, disk))
		require.NoError(t, err)
		epoch := uint64(0)
		change := func() {
			epoch++
			require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
			if c.IntN(2) == 0 {
				require.NoError(t, ix.Flush(t.Context()))
			}
		}
		for len(pickMerge(ix.current.parts, ix.options, ingesting)) == 0 {
			change()
		}
		base, picked, id, err := ix.beginMerge(t.Context(), ingesting)
		require.NoError(t, err)
		var seg *segment
		if countLive(picked) > 0 {
			seg, err = ix.writeSegment(t.Context(), id, picked, ix.options.lists(countLive(picked)), nil)
			require.NoError(t, err)
		}
		for range 4 {
			change()
		}
		want := stateOf(t, ix)
		require.NoError(t, ix.endMerge(t.Context(), picked, seg))
		base.release()
		ix.pending.Store(0)
		require.Equal(t, want, stateOf(t, ix), "seed %d", seed)
		require.Equal(t, epoch, ix.Applied())
		require.NoError(t, ix.Close())
		_, err = Check("index", disk)
		require.NoError(t, err, "seed %d", seed)
		ix, err = Open("index", testOptions(t, disk))
		require.NoError(t, err)
		require.Equal(t, want, stateOf(t, ix), "seed %d", seed)
		require.NoError(t, ix.Close())
	}
}

// TestCompact returns when there is nothing left to merge, while the
// background merges too.
func TestCompact(t *testing.T) {
	options := testOptions(t, vfs.NewMem())
	options.manualMerge = false
	ix, err := Open("index", options)
	require.NoError(t, err)
	c := conformance.NewCorpus(1, testDims)
	for epoch := uint64(1); epoch <= 40; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		require.NoError(t, ix.Flush(t.Context()))
	}
	require.NoError(t, ix.Compact(t.Context()))
	require.Empty(t, pickMerge(ix.current.parts, ix.options, settled))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	ix.merging <- struct{}{}
	require.ErrorIs(t, ix.Compact(cancelled), context.Canceled)
	<-ix.merging
	require.NoError(t, ix.Close())
	require.ErrorIs(t, ix.Compact(t.Context()), index.ErrClosed)
}

// TestMergingAtRest: some time after the last commit few segments become one.
func TestMergingAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := testOptions(t, vfs.NewMem())
		options.manualMerge = false
		ix, err := Open("index", options)
		require.NoError(t, err)
		c := newCollection(testDims)
		documents := c.documents(30)
		for i := range 3 {
			require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: uint64(i + 1), Put: documents[10*i : 10*i+10]}))
			require.NoError(t, ix.Flush(t.Context()))
		}
		synctest.Wait()
		require.Equal(t, 3, ix.Stats().Segments)
		time.Sleep(quietTime)
		synctest.Wait()
		require.Equal(t, 1, ix.Stats().Segments)
		require.NoError(t, ix.Close())
	})
}

// TestPickMerge: while documents come in a tier is merged when it has many; at
// rest the small ones join the large one, unless it is far larger than all.
func TestPickMerge(t *testing.T) {
	c := newCollection(testDims)
	sizes := func(pace pace, documents ...int) (picked []int) {
		var parts []part
		for i, n := range documents {
			seg, err := buildSegment(t.Context(), c.documents(n), testDims, english(t))
			require.NoError(t, err)
			seg.id = uint64(i + 1)
			parts = append(parts, part{seg: seg})
		}
		fresh, err := buildSegment(t.Context(), c.documents(10), testDims, english(t))
		require.NoError(t, err)
		for _, p := range pickMerge(append(parts, part{seg: fresh}), Options{listedRows: 1 << 20}, pace) {
			require.NotZero(t, p.seg.id, "a fresh segment")
			picked = append(picked, p.seg.documents())
		}
		return picked
	}
	require.Empty(t, sizes(ingesting, 300, 20, 40))
	require.Equal(t, []int{20, 40, 200}, sizes(settled, 200, 20, 40))
	require.Equal(t, []int{20, 40}, sizes(settled, 600, 20, 40), "less than a quarter of the large one")
	require.Empty(t, sizes(settled, 600))
	require.Equal(t, []int{10, 20, 30, 40}, sizes(ingesting, 40, 30, 20, 10))
}

// TestMergeReclaims: replaced and deleted rows leave the disk, and the number
// of segments stays small.
func TestMergeReclaims(t *testing.T) {
	ix, err := Open("index", testOptions(t, vfs.NewMem()))
	require.NoError(t, err)
	c := conformance.NewCorpus(1, testDims)
	for epoch := uint64(1); epoch <= 200; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		require.NoError(t, ix.Flush(t.Context()))
		require.NoError(t, ix.mergeAll(t.Context(), ingesting))
		require.Less(t, ix.Stats().Segments, mergeFanout)
		for _, p := range ix.current.parts {
			require.LessOrEqual(t, int(p.dead)*deadShare, p.seg.rows())
		}
	}
	everything := make([]uint32, testOrdinals)
	for i := range everything {
		everything[i] = uint32(i)
	}
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 201, Delete: everything}))
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.mergeAll(t.Context(), ingesting))
	require.Equal(t, Stats{}, ix.Stats())
	requireTidy(t, ix, ix.options.FS)
	require.NoError(t, ix.Close())
}

// TestAutoSeal: fresh rows never exceed their bound by more than a batch.
func TestAutoSeal(t *testing.T) {
	for name, bound := range map[string]func(*Options){
		"rows":  func(o *Options) { o.FreshRows = 20 },
		"bytes": func(o *Options) { o.FreshRows, o.FreshBytes = 1000, 2000 },
	} {
		options := testOptions(t, vfs.NewMem())
		bound(&options)
		ix, err := Open("index", options)
		require.NoError(t, err)
		c := conformance.NewCorpus(1, testDims)
		for epoch := uint64(1); epoch <= 50; epoch++ {
			require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
			require.Less(t, ix.Stats().FreshRows, 20+12*5, name)
			require.LessOrEqual(t, len(ix.current.parts)-ix.Stats().Segments, 8, name)
		}
		require.Greater(t, ix.Applied(), uint64(30), name)
		require.NoError(t, ix.Close())
	}
}
