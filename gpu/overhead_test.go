package gpu

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var raceEnabled bool // set by race_test.go

// nullDevice leaves zeros. Its callers run their batches themselves.
type nullDevice struct{}

func (nullDevice) Prompt() {}

func (nullDevice) Dimensions() int                           { return 384 }
func (nullDevice) Labels() int                               { return 0 }
func (nullDevice) Precision() string                         { return "null" }
func (nullDevice) Close() error                              { return nil }
func (nullDevice) Run(context.Context, *Batch, Output) error { return nil }

func startNull(tb testing.TB) *Scheduler {
	tb.Helper()
	v := tinyServed()
	v.Devices = []Device{nullDevice{}}
	s, err := NewScheduler(Options{}, v)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close(context.Background())) })
	return s
}

// A call allocates its results and its tokens, and nothing that grows with what
// was embedded before.
func TestSteadyStateAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	s := startNull(t)
	for _, n := range []int{1, 100} {
		r := Request{Texts: repeat("a query of some words", n)}
		allocations := testing.AllocsPerRun(200, func() {
			if _, err := s.Embed(context.Background(), r); err != nil {
				t.Error(err)
			}
		})
		require.LessOrEqual(t, allocations, float64(13+n*5/4), "%d texts", n)
	}
}

// A million calls leave nothing behind.
func TestAMillionCallsKeepTheHeapFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("a million calls take some seconds")
	}
	s := startNull(t)
	const rounds, callers, calls = 10, 10, 10_000
	var heaps []uint64
	for range rounds {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				r := Request{Texts: []string{"a"}, Priority: Priority(i % 2)}
				for range calls {
					if _, err := s.Embed(context.Background(), r); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		heaps = append(heaps, liveHeap())
	}
	require.Less(t, heaps[rounds-1], heaps[0]+1<<20, "bytes after each tenth: %v", heaps)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Callers that run batches leave nothing behind that nobody runs.
func TestCallersLeaveNothingWaiting(t *testing.T) {
	s := startNull(t)
	var calling sync.WaitGroup
	for i := range 64 {
		calling.Go(func() {
			r := Request{Texts: repeat("a few words", 1+i%40), Priority: Priority(i % 2)}
			for range 200 {
				if _, err := s.Embed(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calling.Wait()
}

// BenchmarkOverhead is what the scheduler adds to a device that takes no time:
// tokenizing, queueing, waking up, handing out.
func BenchmarkOverhead(b *testing.B) {
	s := startNull(b)
	r := Request{Texts: []string{"a query of some words"}}
	times := make([]time.Duration, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		if _, err := s.Embed(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		if len(times) < cap(times) {
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "µs-p50")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1e3, "µs-p99")
}

// BenchmarkThroughput is many callers at once.
func BenchmarkThroughput(b *testing.B) {
	s := startNull(b)
	r := Request{Texts: repeat("a query of some words", 8), Priority: Bulk}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Embed(context.Background(), r); err != nil {
				b.Error(err)
			}
		}
	})
}
