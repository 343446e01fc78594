package milvus

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/index"
	"sluice/index/conformance"
	"sluice/index/milvus/milvustest"
)

// TestOutage kills the server while it is searched and written to, and starts it
// again: no answer is wrong or short, no acknowledged write is lost, and the
// index goes on by itself.
func TestOutage(t *testing.T) {
	if os.Getenv("MILVUS_ADDR") != "" {
		t.Skip("SKIPPED: the server at MILVUS_ADDR is not ours to kill")
	}
	const n, k, seed = 60, 500, 6
	c := conformance.NewCorpus(seed, 8)
	ix := opened(t, []*Cluster{cluster(t)}, optionsAt(t, t.TempDir(), 8))
	rows := 0
	for _, d := range corpus(t, ix, c, n) {
		rows += len(d.Rows)
	}
	vector, stop := c.Vector(), make(chan struct{})
	var searching sync.WaitGroup
	for range 2 {
		searching.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				hits, err := dense(t, ix, everyone(n), vector, k)
				if err == nil && len(hits) != rows || err != nil && !errors.Is(err, index.ErrUnavailable) {
					t.Errorf("%d of %d rows, %v", len(hits), rows, err)
					return
				}
			}
		})
	}
	written := index.Batch{Epoch: 2, Put: []index.Document{c.RareDocument(n)}}
	milvustest.Kill(t)
	require.ErrorIs(t, ix.Apply(t.Context(), written), index.ErrUnavailable)
	milvustest.Restart(t)
	began := time.Now()
	for err := ix.Apply(t.Context(), written); err != nil; err = ix.Apply(t.Context(), written) {
		require.ErrorIs(t, err, index.ErrUnavailable)
		require.Less(t, time.Since(began), 3*time.Minute, "%v", err)
	}
	close(stop)
	searching.Wait()
	hits, err := dense(t, ix, everyone(n+1), vector, k)
	require.NoError(t, err)
	require.Len(t, hits, rows+len(written.Put[0].Rows))
}
