package bench_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sluice/bench"
	"sluice/index/local/ivf"
	"sluice/model/hub"
	"sluice/needs"
)

var (
	sentences = flag.Int("sentences", 0, "rows of BenchmarkSentences")
	recall    = flag.Float64("recall", ivf.DefaultRecall, "that BenchmarkSentences wants")
)

// BenchmarkSentences searches sentence vectors under filters and prints recall
// of the ten nearest, and CPU time: for each query the least of a few runs.
//
//	go test ./bench -run X -bench Sentences -sentences 300000
func BenchmarkSentences(b *testing.B) {
	if *sentences == 0 {
		b.Skip("-sentences says of how many rows")
	}
	cache, err := hub.CacheDir()
	require.NoError(b, err)
	v, err := bench.LoadVectors(b.Context(), bench.VectorOptions{
		Rows: *sentences, Corpora: needs.Data(b, "."), Model: needs.Model(b), Cache: filepath.Join(cache, "bench")})
	require.NoError(b, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &searcher{space: ivf.NewSpace(v.Dims, *recall), vectors: v}
	before := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	s.listed = s.build(b, ivf.Lists(*sentences))
	fmt.Fprintf(os.Stderr, "%d rows built in %.1f CPU s, %d bytes a row\n", *sentences,
		(cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) - before).Seconds(), len(s.listed.Bytes()) / *sentences)
	s.flat = s.build(b, 0)
	for _, share := range []float64{1, 0.5, 0.1, 0.01, 0.001, 0.0001} {
		for _, correlated := range []bool{false, true} {
			s.measure(share, correlated)
		}
	}
}

type searcher struct {
	space        *ivf.Space
	vectors      *bench.Vectors
	listed, flat *ivf.Index
	query        ivf.Query
	memory       ivf.Scratch
	scores       []float32
	hits         []hit
}

func (s *searcher) build(b *testing.B, lists int) *ivf.Index {
	x, err := s.space.Build(b.Context(), *sentences, s.vectors.Row, ivf.Options{Lists: lists, Threads: 2, Seed: 1})
	require.NoError(b, err)
	return x
}

func (s *searcher) measure(share float64, correlated bool) {
	const queries, filters = 300, 4
	var sets []*ivf.Allowed
	for seed := range uint64(filters) {
		words := make([]uint64, (*sentences+63)/64)
		for _, row := range s.vectors.Allowed(share, correlated, seed) {
			words[row/64] |= 1 << (row % 64)
		}
		sets = append(sets, ivf.NewAllowed(words))
	}
	found, wanted := 0, 0
	var times []time.Duration
	for i := range queries {
		query := s.vectors.Queries[i*s.vectors.Dims:][:s.vectors.Dims]
		want := s.search(s.flat, sets[i%filters], query)
		best := time.Hour
		var got []uint32
		for range 4 {
			start := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
			got = s.search(s.listed, sets[i%filters], query)
			best = min(best, cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)-start)
		}
		times = append(times, best)
		wanted += len(want)
		for _, row := range want {
			if slices.Contains(got, row) {
				found++
			}
		}
	}
	slices.Sort(times)
	var total time.Duration
	for _, t := range times {
		total += t
	}
	fmt.Fprintf(os.Stderr, "%6.2f %% correlated %-5v recall@10 %.4f, %6.0f queries a CPU s, p50 %v, p95 %v\n", 100*share, correlated,
		float64(found)/float64(wanted), queries/total.Seconds(), times[queries/2], times[queries*95/100])
}

type hit struct {
	row   uint32
	score float32
}

// search returns the ten best rows, as local.Index does it.
func (s *searcher) search(x *ivf.Index, allowed *ivf.Allowed, query []float32) (rows []uint32) {
	s.space.Prepare(&s.query, query)
	found := x.Search(&s.query, allowed, nil, 10, float32(math.Inf(-1)), &s.memory)
	s.scores = slices.Grow(s.scores[:0], len(found))[:len(found)]
	s.space.DotRows(query, s.vectors.Rows, found, s.scores)
	s.hits = s.hits[:0]
	for i, row := range found {
		s.hits = append(s.hits, hit{row, s.scores[i]})
	}
	slices.SortFunc(s.hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row)) })
	for _, h := range s.hits[:min(10, len(s.hits))] {
		rows = append(rows, h.row)
	}
	return rows
}

func cpuTime(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
