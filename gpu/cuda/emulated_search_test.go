//go:build nvidia

package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/late"
	"sluice/index/local"
	"sluice/index/text"
	"sluice/kernels/ref"
)

// randomBits lets one in so many rows through.
func randomBits(random *rand.Rand, rows, oneIn int) bits {
	words := make([]uint64, (rows+63)/64)
	for row := range rows {
		if random.IntN(oneIn) == 0 {
			words[row/64] |= 1 << (row % 64)
		}
	}
	return bits{&words}
}

func unitRows(random *rand.Rand, rows, dims int) []float32 {
	v := make([]float32, rows*dims)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	for at := 0; at < len(v); at += dims {
		ref.Normalize(v[at : at+dims])
	}
	return v
}

// best is what a search has to find, up to Slack: products by row.
func best(vectors, query []float32, mask bits) map[uint32]float32 {
	products := map[uint32]float32{}
	for row := range len(vectors) / len(query) {
		if (*mask.words)[row/64]>>(row%64)&1 == 1 {
			products[uint32(row)] = ref.Dot(query, vectors[row*len(query):][:len(query)])
		}
	}
	return products
}

func requireBest(t *testing.T, want map[uint32]float32, near Near, k int) {
	t.Helper()
	require.Len(t, near.Rows, min(k, len(want)))
	last := float32(-2)
	for i, row := range near.Rows {
		product, allowed := want[row]
		require.True(t, allowed, "row %d", row)
		require.InDelta(t, product, near.Products[i], float64(near.Slack))
		delete(want, row)
		last = near.Products[i]
	}
	for row, product := range want {
		require.LessOrEqual(t, product, last+near.Slack, "row %d is missing", row)
	}
}

// Many callers with bitmaps of their own, of odd dimensions, get the best rows
// that theirs let through.
func TestSearchOnTheDevice(t *testing.T) {
	s := &Searcher{workers: []*worker{startEmulated(t, 0)}}
	random := rand.New(rand.NewPCG(5, 5))
	for _, shape := range [][2]int{{1, 3}, {1000, 20}, {333, 64}} { // rows, dims
		vectors := unitRows(random, shape[0], shape[1])
		rows := s.Hold(vectors, shape[1])
		held(t, rows)
		queries, masks := unitRows(random, 12, shape[1]), []bits{}
		for i := range 12 {
			masks = append(masks, randomBits(random, shape[0], 1<<(i%4)))
		}
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				query := queries[i*shape[1]:][:shape[1]]
				near, err := rows.Search(t.Context(), query, masks[i], 10*i+1)
				if err != nil {
					t.Error(err)
					return
				}
				requireBest(t, best(vectors, query, masks[i]), near, 10*i+1)
			})
		}
		all.Wait()
		rows.Close()
		_, err := rows.Search(t.Context(), queries[:shape[1]], masks[0], 1)
		require.ErrorIs(t, err, ErrNotHeld)
	}
}

// More bitmaps than the device keeps.
func TestManyMasks(t *testing.T) {
	s := &Searcher{workers: []*worker{startEmulated(t, 0)}}
	random := rand.New(rand.NewPCG(6, 6))
	vectors := unitRows(random, 70, 8)
	rows := s.Hold(vectors, 8)
	held(t, rows)
	masks := []bits{}
	for range mostMasks + 5 {
		masks = append(masks, randomBits(random, 70, 2))
	}
	for range 2 {
		for _, m := range masks {
			near, err := rows.Search(t.Context(), vectors[:8], m, 5)
			require.NoError(t, err)
			requireBest(t, best(vectors, vectors[:8], m), near, 5)
		}
	}
	rows.Close()
}

// A worker that dies over a search is started again and has the rows again; a
// device without room for them says so, and the rest of the worker lives.
func TestRowsSurviveTheirWorker(t *testing.T) {
	t.Setenv("CUDA_EMULATOR_FAULT", "crash")
	w := startEmulated(t, 0)
	t.Setenv("CUDA_EMULATOR_FAULT", "")
	random := rand.New(rand.NewPCG(7, 7))
	vectors, mask := unitRows(random, 100, 16), randomBits(random, 100, 2)
	rows := (&Searcher{workers: []*worker{w}}).Hold(vectors, 16)
	held(t, rows)
	_, err := rows.Search(t.Context(), vectors[:16], mask, 3)
	require.ErrorIs(t, err, ErrWorker)
	require.Eventually(t, func() bool {
		near, err := rows.Search(t.Context(), vectors[:16], mask, 3)
		return err == nil && len(near.Rows) == 3
	}, time.Minute, time.Millisecond)
	told := (&Searcher{workers: []*worker{w}}).Telemetry(t.Context())[0]
	require.True(t, told.Up)
	require.Equal(t, 2, told.Starts)
	require.Less(t, told.Device.Free, told.Device.Memory-100*16*2, "the rows are there")
	rows.Close()
}

func TestRowsWithoutRoom(t *testing.T) {
	t.Setenv("CUDA_EMULATOR_MEMORY", "3500")
	w := startEmulated(t, 0)
	large := (&Searcher{workers: []*worker{w}}).Hold(make([]float32, 1<<17), 16)
	<-large.Ended()
	require.NoError(t, w.life.reason())
	vectors := unitRows(rand.New(rand.NewPCG(8, 8)), 100, 16)
	small := (&Searcher{workers: []*worker{w}}).Hold(vectors, 16)
	held(t, small)
	_, err := small.Search(t.Context(), vectors[:16], randomBits(rand.New(rand.NewPCG(9, 9)), 100, 1), 3)
	require.ErrorContains(t, err, "memory does not suffice")
	small.Close()
	large.Close()
}

// An index finds with a device what one without finds by scanning all, to the
// bit, for any set, and after documents were changed and deleted.
func TestIndexOnTheDevice(t *testing.T) {
	s := &Searcher{workers: []*worker{startEmulated(t, 0)}}
	const dims, documents = 24, 3000
	random := rand.New(rand.NewPCG(10, 10))
	vectors := unitRows(random, documents, dims)
	analyzer, err := text.New(text.Default)
	require.NoError(t, err)
	var rows []*counted
	open := func(hold bool) *local.Index {
		o := local.Options{Dimensions: dims, Analyzer: analyzer, Log: quiet, HoldRows: documents}
		if hold {
			o.Hold = func(vectors []float32, dims int) local.Held {
				rows = append(rows, &counted{Rows: s.Hold(vectors, dims)})
				return rows[len(rows)-1]
			}
		}
		ix, err := local.Open(t.TempDir(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ix.Close()) })
		return ix
	}
	batch := index.Batch{Epoch: 1}
	for i := range uint32(documents) {
		batch.Put = append(batch.Put, index.Document{Ordinal: i, Rows: []index.Row{{Row: i + 1, Vector: vectors[i*dims:][:dims]}}})
	}
	device, plain := open(true), open(false)
	require.NoError(t, device.Apply(t.Context(), batch))
	require.NoError(t, plain.Apply(t.Context(), batch)) // fresh: all of its rows are scored
	require.NoError(t, device.Flush(t.Context()))
	require.Len(t, rows, 1)
	held(t, rows[0].Rows)
	change := index.Batch{Epoch: 2, Delete: []uint32{3, 4, 5, 2999}}
	for _, ix := range []*local.Index{device, plain} {
		require.NoError(t, ix.Apply(t.Context(), change))
	}
	for _, oneIn := range []uint32{1, 2, 9} {
		var ordinals []uint32
		for i := random.Uint32N(oneIn); i < documents; i += oneIn {
			ordinals = append(ordinals, i)
		}
		requireSameHits(t, device, plain, filter.SetOf(ordinals...), vectors[random.IntN(documents)*dims:][:dims])
	}
	require.Equal(t, 9, rows[0].answers, "the device was asked")
}

// counted counts answers.
type counted struct {
	*Rows
	answers int
}

func (c *counted) Search(ctx context.Context, query []float32, mask Mask, k int) (Near, error) {
	near, err := c.Rows.Search(ctx, query, mask, k)
	if err == nil {
		c.answers++
	}
	return near, err
}

func requireSameHits(t *testing.T, device, plain *local.Index, set filter.Set, query []float32) {
	t.Helper()
	search := func(ix *local.Index, k int) []index.Hit {
		r, err := ix.Reader()
		require.NoError(t, err)
		defer r.Close()
		hits, err := r.Dense(context.Background(), set, query, k)
		require.NoError(t, err)
		return hits
	}
	for _, k := range []int{1, 10, 70} {
		require.Equal(t, search(plain, k), search(device, k), fmt.Sprint(set.Len(), " allowed, k ", k))
	}
}

// Scores of late interaction are the CPU's, in parts too where memory is short.
func TestMaxSimOnTheDevice(t *testing.T) {
	const dims = 64
	coder := late.NewCoder(late.Kind{Dimensions: dims, Bits: 1})
	random := rand.New(rand.NewPCG(11, 11))
	tokens, special := unitRows(random, 7, dims), []bool{true, false, false, false, false, false, true}
	query, rotated := coder.Query(tokens, special), coder.Rotated(tokens, special)
	var passages [][]byte
	var want []float32
	for i := range 60 {
		codes := coder.Encode(unitRows(random, i*3, dims), make([]bool, i*3))
		score, ok := query.Score(codes)
		require.True(t, ok)
		rows, _ := coder.Rows(codes)
		passages, want = append(passages, rows), append(want, score)
	}
	for _, memory := range []string{"1000000000", "20000"} {
		t.Setenv("CUDA_EMULATOR_MEMORY", memory)
		s := &Searcher{workers: []*worker{startEmulated(t, 0)}}
		scores := make([]float32, len(passages))
		require.NoError(t, s.MaxSim(t.Context(), scores, rotated, dims, passages))
		require.InDeltaSlice(t, want, scores, 1e-4)
		over, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, s.MaxSim(over, scores, rotated, dims, passages), context.Canceled)
		require.Error(t, s.MaxSim(t.Context(), scores, make([]float32, 2000*dims), dims, passages), "too many tokens")
		require.NoError(t, s.workers[0].life.reason(), "it lives on")
	}
}
