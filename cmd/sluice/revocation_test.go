package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// BenchmarkRevocation takes one document away from its readers, over HTTP, and
// measures until the acknowledgement: durable, and obeyed by every search that
// starts later. Loaded, four clients search without a pause.
func BenchmarkRevocation(b *testing.B) {
	const documents = 1000
	d := newHome(b, accessPeople).serve()
	root, ann := d.as("root"), d.as("ann")
	_, err := root.CreateCollection(b.Context(), "docs", client.CollectionSettings{})
	require.NoError(b, err)
	written := func(yield func(client.Document, error) bool) {
		for i := 0; i < documents && yield(note(fmt.Sprint(i), fmt.Sprintf("Harbour entry %d of the tide ledger.", i), "group:hr"), nil); i++ {
		}
	}
	require.NoError(b, root.Ingest(b.Context(), "docs", written, func(client.WriteResult) error { return nil }))
	for _, load := range []struct {
		name    string
		clients int
	}{{"idle", 0}, {"loaded", 4}} {
		b.Run(load.name, func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			var searching sync.WaitGroup
			var searches atomic.Int64
			for range load.clients {
				searching.Go(func() {
					for ctx.Err() == nil {
						if _, err := ann.Search(b.Context(), "docs", client.SearchRequest{Query: "tide at the harbour", K: 10}); err != nil {
							b.Error(err)
							return
						}
						searches.Add(1)
					}
				})
			}
			var took []time.Duration
			started := time.Now()
			for i := 0; b.Loop(); i++ {
				key := fmt.Sprint(i % documents)
				began := time.Now()
				_, err := root.SetAccess(b.Context(), "docs", key, client.AccessPatch{Readers: jsonOf([]string{})})
				took = append(took, time.Since(began))
				b.StopTimer()
				require.NoError(b, err)
				_, err = root.SetAccess(b.Context(), "docs", key, client.AccessPatch{Readers: jsonOf([]string{"group:hr"})})
				require.NoError(b, err)
				b.StartTimer()
			}
			b.ReportMetric(float64(searches.Load())/time.Since(started).Seconds(), "searches/s")
			stop()
			searching.Wait()
			slices.Sort(took)
			for _, p := range []int{50, 95, 99} {
				b.ReportMetric(took[len(took)*p/100].Seconds()*1e3, fmt.Sprintf("p%d-ms", p))
			}
		})
	}
	d.stop()
}
