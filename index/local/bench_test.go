package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/local/ivf"
)

const (
	benchDocuments = 25_000
	benchRows      = 4 // of each document
	benchDims      = 384
)

// collection makes documents of random vectors and words that follow Zipf's law.
type collection struct {
	*rand.Rand
	words *rand.Zipf
	dims  int
}

func newCollection(dims int) *collection {
	rng := rand.New(rand.NewPCG(1, 8))
	return &collection{rng, rand.NewZipf(rng, 1.1, 8, 50_000), dims}
}

func (c *collection) vector() []float32 {
	v, square := make([]float32, c.dims), 0.0
	for i := range v {
		v[i] = float32(c.NormFloat64())
		square += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(square))
	}
	return v
}

func (c *collection) text(words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "w%d ", c.words.Uint64())
	}
	return b.String()
}

func (c *collection) documents(n int) []index.Document {
	documents := make([]index.Document, n)
	for i := range documents {
		documents[i].Ordinal = uint32(i)
		for j := range benchRows {
			row := index.Row{Row: uint32(i*benchRows + j), Text: c.text(60), Vector: c.vector()}
			documents[i].Rows = append(documents[i].Rows, row)
		}
	}
	return documents
}

// every returns every n-th ordinal.
func every(n, documents int) filter.Set {
	var ordinals []uint32
	for i := 0; i < documents; i += n {
		ordinals = append(ordinals, uint32(i))
	}
	return filter.SetOf(ordinals...)
}

func cpuTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// Benchmark measures an index of 100,000 rows in CPU milliseconds a query.
func Benchmark(b *testing.B) {
	c := newCollection(benchDims)
	documents := c.documents(benchDocuments)
	options := testOptions(b, nil)
	options.Dimensions, options.FreshRows = benchDims, 0
	ix, err := Open(b.TempDir()+"/index", options)
	require.NoError(b, err)
	defer ix.Close() //nolint:errcheck
	start := cpuTime()
	for i := 0; i < len(documents); i += 250 {
		require.NoError(b, ix.Apply(b.Context(), index.Batch{Epoch: uint64(i + 1), Put: documents[i : i+250]}))
	}
	require.NoError(b, ix.Flush(b.Context()))
	built := cpuTime()
	require.NoError(b, ix.mergeAll(b.Context(), ingesting))
	stats := ix.Stats()
	fmt.Fprintf(os.Stderr, "built in %.0f CPU ms, merged in %.0f: %+v\n", built-start, cpuTime()-built, stats)

	r, err := ix.Reader()
	require.NoError(b, err)
	defer r.Close()
	for _, n := range []int{100, 10, 1} {
		allowed, vector, query := every(n, benchDocuments), c.vector(), c.text(8)
		run := func(name string, search func() ([]index.Hit, error)) {
			b.Run(fmt.Sprintf("%s/%d%%", name, 100/n), func(b *testing.B) {
				b.ReportAllocs()
				start := cpuTime()
				for b.Loop() {
					hits, err := search()
					require.NoError(b, err)
					require.NotEmpty(b, hits)
				}
				b.ReportMetric((cpuTime()-start)/float64(b.N), "cpu-ms/op")
			})
		}
		run("dense", func() ([]index.Hit, error) { return r.Dense(b.Context(), allowed, vector, 70) })
		run("lexical", func() ([]index.Hit, error) { return r.Lexical(b.Context(), allowed, query, 100) })
	}
	var memory runtime.MemStats
	documents = nil
	runtime.GC()
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(os.Stderr, "heap at rest: %d MiB (segments are mapped)\n", memory.HeapAlloc>>20)
}

// TestQueriesDoNotAllocate: what a query allocates does not grow with the rows
// it looks at.
func TestQueriesDoNotAllocate(t *testing.T) {
	allocations := func(documents int) (dense, lexical float64) {
		c := newCollection(testDims)
		seg, err := buildSegment(t.Context(), c.documents(documents), testDims, english(t))
		require.NoError(t, err)
		state, allowed, vector := newSnapshot(1, []part{{seg: seg}}), every(3, documents), c.vector()
		memory, clauses := new(scratch), english(t).Parse(`w1 w2 w3 w5* "w1 w2"`)
		space := ivf.NewSpace(testDims, ivf.DefaultRecall)
		dense = testing.AllocsPerRun(20, func() {
			s := denseSearch{space: space, state: state, allowed: allowed, query: vector, denseMemory: &memory.dense}
			_, err = s.run(t.Context(), 10)
		})
		require.NoError(t, err)
		lexical = testing.AllocsPerRun(20, func() {
			v := state.view(allowed)
			s := lexicalSearch{state: state, visible: v.slots, clauses: clauses, model: newBM25(v.rows, v.length), lexicalMemory: &memory.lexical}
			_, err = s.run(t.Context(), 10)
		})
		require.NoError(t, err)
		return dense, lexical
	}
	smallDense, smallLexical := allocations(100)
	largeDense, largeLexical := allocations(3000)
	require.LessOrEqual(t, largeDense, smallDense)
	require.LessOrEqual(t, max(smallLexical, largeLexical), 1.0, "the hits")
	require.LessOrEqual(t, largeDense, 1.0, "the hits")
	t.Logf("allocations: dense %v, lexical %v", largeDense, largeLexical)
}
