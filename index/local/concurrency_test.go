package local

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/conformance"
)

// TestConcurrent reads while batches, flushes and merges on real, mapped files
// go on. Document 0 is never touched, and every answer must hold it unchanged.
func TestConcurrent(t *testing.T) {
	options := testOptions(t, nil)
	options.manualMerge, options.FreshRows = false, 10
	dir := t.TempDir() + "/index"
	ix, err := Open(dir, options)
	require.NoError(t, err)
	c := conformance.NewCorpus(1, testDims)
	row := index.Row{Row: 1 << 30, Text: "unmistakable", Vector: c.Vector()}
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: []index.Document{{Ordinal: 100, Rows: []index.Row{row}}}}))
	allowed := filter.SetOf(100)
	want := search(t, ix, allowed, row.Vector)

	written := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-written:
					return
				default:
				}
				if got := search(t, ix, allowed, row.Vector); !equalHits(want, got) {
					t.Errorf("got %v, want %v", got, want)
					return
				}
			}
		})
	}
	for epoch := uint64(2); epoch < 150; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		if epoch%3 == 0 {
			require.NoError(t, ix.Flush(t.Context()))
		}
	}
	close(written)
	readers.Wait()
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.Close())

	options.manualMerge = true // ends what Close cut short
	ix, err = Open(dir, options)
	require.NoError(t, err)
	require.NoError(t, ix.mergeAll(t.Context(), ingesting))
	require.Equal(t, want, search(t, ix, allowed, row.Vector))
	require.NoError(t, ix.Close())
	report, err := Check(dir, nil)
	require.NoError(t, err)
	require.Equal(t, uint64(149), report.Epoch)
	require.Less(t, report.Segments, mergeFanout)
}

func search(t *testing.T, ix *Index, allowed filter.Set, vector []float32) []index.Hit {
	r, err := ix.Reader()
	if err != nil {
		t.Error(err)
		return nil
	}
	defer r.Close()
	dense, err := r.Dense(t.Context(), allowed, vector, 5)
	if err != nil {
		t.Error(err)
	}
	lexical, err := r.Lexical(t.Context(), allowed, "unmistakable", 5)
	if err != nil {
		t.Error(err)
	}
	return append(dense, lexical...)
}

func equalHits(a, b []index.Hit) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestMappingsAreLetGo: the last holder unmaps, no one sooner, and only once.
func TestMappingsAreLetGo(t *testing.T) {
	ix, err := Open(t.TempDir()+"/index", testOptions(t, nil))
	require.NoError(t, err)
	c := conformance.NewCorpus(3, testDims)
	unmapped := map[uint64]int{}
	var readers []index.Reader
	for epoch := uint64(1); epoch <= 12; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		require.NoError(t, ix.Flush(t.Context()))
		newest := ix.current.parts[len(ix.current.parts)-1].seg
		require.NotNil(t, newest.unmap, "a sealed segment is mapped")
		unmap := newest.unmap
		newest.unmap = func() { unmapped[newest.id]++; unmap() }
		r, err := ix.Reader()
		require.NoError(t, err)
		readers = append(readers, r)
	}
	require.NoError(t, ix.mergeAll(t.Context(), ingesting))
	require.NoError(t, ix.Close())
	require.Empty(t, unmapped)
	for _, r := range readers {
		_, err := r.Dense(t.Context(), filter.SetOf(1, 2, 3), c.Vector(), 3)
		require.NoError(t, err)
		r.Close()
	}
	require.Len(t, unmapped, 12)
	for id, times := range unmapped {
		require.Equal(t, 1, times, "segment %d", id)
	}
}
