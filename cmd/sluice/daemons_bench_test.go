package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// BenchmarkDaemons takes one document away from its readers through one of three
// daemons on one database, while clients search through the two others without
// a pause, and measures until the acknowledgement; and, of the searches, what
// waiting for the feed and the recheck take. POSTGRES_URL names a database
// with fsync on: the one that tests start has it off.
func BenchmarkDaemons(b *testing.B) {
	const documents = 1000
	f := newFleet(b, func(url string) [3]string { return [3]string{url, url, url} })
	root := f.daemons[0].as("root")
	f.daemons[0].collection("root", "docs")
	written := func(yield func(client.Document, error) bool) {
		for i := 0; i < documents && yield(note(fmt.Sprint(i), fmt.Sprintf("Harbour entry %d of the tide ledger.", i), "group:hr"), nil); i++ {
		}
	}
	require.NoError(b, root.Ingest(b.Context(), "docs", written, func(client.WriteResult) error { return nil }))
	for _, clients := range []int{0, 4} {
		b.Run(fmt.Sprintf("searchers=%d", clients), func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			var searching sync.WaitGroup
			var mu sync.Mutex
			stages := map[string][]float64{}
			for i := range clients {
				d := f.daemons[1+i%2]
				searching.Go(func() {
					for ctx.Err() == nil {
						timed := timedSearch(b, d)
						mu.Lock()
						for name, ms := range timed {
							stages[name] = append(stages[name], ms)
						}
						mu.Unlock()
					}
				})
			}
			var took []float64
			for i := 0; b.Loop(); i++ {
				key := fmt.Sprint(i % documents)
				began := time.Now()
				_, err := root.SetAccess(b.Context(), "docs", key, client.AccessPatch{Readers: jsonOf([]string{})})
				took = append(took, time.Since(began).Seconds()*1e3)
				b.StopTimer()
				require.NoError(b, err)
				_, err = root.SetAccess(b.Context(), "docs", key, client.AccessPatch{Readers: jsonOf([]string{"group:hr"})})
				require.NoError(b, err)
				b.StartTimer()
			}
			stop()
			searching.Wait()
			b.ReportMetric(percentile(took, 50), "p50-ms")
			b.ReportMetric(percentile(took, 95), "p95-ms")
			for _, stage := range []string{"feed", "recheck", "total"} {
				if ms := stages[stage]; len(ms) > 0 {
					b.ReportMetric(percentile(ms, 50), stage+"-p50-ms")
					b.ReportMetric(percentile(ms, 95), stage+"-p95-ms")
				}
			}
		})
	}
}

func percentile(values []float64, p int) float64 {
	slices.Sort(values)
	return values[len(values)*p/100]
}

var timing = regexp.MustCompile(`([a-z]+);dur=([0-9.]+)`)

// timedSearch searches and returns the stages' milliseconds.
func timedSearch(b *testing.B, d *served) map[string]float64 {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, d.url+"/v1/collections/docs/search",
		bytes.NewReader([]byte(`{"query":"tide at the harbour","k":10}`)))
	if err != nil {
		b.Error(err)
		return nil
	}
	r.Header.Set("Authorization", "Bearer "+d.home.keys["ann"])
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		b.Errorf("%d: %s", response.StatusCode, text)
	}
	stages := map[string]float64{}
	for _, m := range timing.FindAllStringSubmatch(response.Header.Get("Server-Timing"), -1) {
		stages[m[1]], _ = strconv.ParseFloat(m[2], 64)
	}
	return stages
}
