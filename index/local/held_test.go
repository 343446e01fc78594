package local

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/conformance"
	"sluice/kernels/ref"
)

// copied is a Held of this process, whose products are off by up to slack. spoil
// changes what it answers.
type copied struct {
	vectors []float32
	dims    int
	slack   float32
	spoil   func(*Near) error
	asked   atomic.Int32
	masks   map[Mask][]uint64
	closed  atomic.Bool
}

func (c *copied) Most() int { return 120 }
func (c *copied) Close()    { c.closed.Store(true) }

func (c *copied) Search(_ context.Context, query []float32, m Mask, k int) (Near, error) {
	c.asked.Add(1)
	words := m.Words()
	if known := c.masks[m]; known != nil && !slices.Equal(known, words) {
		return Near{}, errors.New("one mask with different bits")
	}
	c.masks[m] = slices.Clone(words)
	type scored struct {
		row     uint32
		product float32
	}
	var all []scored
	for row := range uint32(len(c.vectors) / c.dims) {
		if words[row/64]>>(row%64)&1 == 1 {
			off := c.slack * float32(int(row*7%5)-2) / 3 // always the same
			all = append(all, scored{row, ref.Dot(query, c.vectors[int(row)*c.dims:][:c.dims]) + off})
		}
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.product, a.product), cmp.Compare(a.row, b.row)) })
	near := Near{Slack: c.slack}
	for _, s := range all[:min(k, len(all))] {
		near.Rows, near.Products = append(near.Rows, s.row), append(near.Products, s.product)
	}
	if c.spoil != nil {
		return near, c.spoil(&near)
	}
	return near, nil
}

const (
	heldDims = 12
	heldDocs = 700
)

// heldIndexes are one with copies and one that scores all of its rows, of the
// same documents, some of them deleted since.
func heldIndexes(t *testing.T, slack float32) (held, plain *Index, copies *[]*copied) {
	t.Helper()
	corpus := conformance.NewCorpus(11, heldDims)
	batch := index.Batch{Epoch: 1}
	for ordinal := range uint32(heldDocs) {
		batch.Put = append(batch.Put, corpus.Document(ordinal))
	}
	change := index.Batch{Epoch: 2, Delete: []uint32{2, 30, 699}, Put: []index.Document{corpus.Document(7)}}
	copies = new([]*copied)
	open := func(hold func([]float32, int) Held) *Index {
		ix, err := Open(t.TempDir(), Options{
			Dimensions: heldDims, Analyzer: english(t), Hold: hold, HoldRows: 100, manualMerge: true, codedRows: 1 << 20,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ix.Close()) })
		require.NoError(t, ix.Apply(t.Context(), batch))
		require.NoError(t, ix.Flush(t.Context()))
		require.NoError(t, ix.Apply(t.Context(), change))
		return ix
	}
	held = open(func(vectors []float32, dims int) Held {
		*copies = append(*copies, &copied{vectors: vectors, dims: dims, slack: slack, masks: map[Mask][]uint64{}})
		return (*copies)[len(*copies)-1]
	})
	return held, open(nil), copies
}

func everyNth(n uint32) filter.Set {
	var ordinals []uint32
	for i := uint32(0); i < heldDocs; i += n {
		ordinals = append(ordinals, i)
	}
	return filter.SetOf(ordinals...)
}

// requireSame compares both for many sets, queries and k.
func requireSame(t *testing.T, held, plain *Index) {
	t.Helper()
	corpus := conformance.NewCorpus(12, heldDims)
	for _, n := range []uint32{1, 2, 3, 5} {
		for _, k := range []int{1, 20, 60, 119, 120, 300} {
			set, query := everyNth(n), corpus.Vector()
			require.Equal(t, dense(t, plain, set, query, k), dense(t, held, set, query, k), "one in %d, k %d", n, k)
		}
	}
}

// What a copy finds is what scoring all rows does, whatever its products are off by.
func TestHeldSegmentsFindTheSame(t *testing.T) {
	for _, slack := range []float32{0, 1e-3, 0.05, 3} {
		held, plain, copies := heldIndexes(t, slack)
		requireSame(t, held, plain)
		require.Len(t, *copies, 1)
		require.EqualValues(t, 16, (*copies)[0].asked.Load(), "for k below Most")
	}
}

// A copy that fails is not used for that query; one that lies, never again.
func TestHeldSegmentsThatAreWrong(t *testing.T) {
	lies := map[string]func(*Near) error{
		"fails": func(*Near) error { return errors.New("not yet") },
		"forgets the best": func(n *Near) error {
			n.Rows, n.Products = n.Rows[1:], n.Products[1:]
			return nil
		},
		"has nothing":   func(n *Near) error { *n = Near{}; return nil },
		"another score": func(n *Near) error { n.Products[0] += 0.1; return nil },
		"not a number":  func(n *Near) error { n.Products[len(n.Products)-1] *= float32(nan()); return nil },
		"twice":         func(n *Near) error { n.Rows[1], n.Products[1] = n.Rows[0], n.Products[0]; return nil },
		"deleted":       func(n *Near) error { n.Rows[0] = 2; return nil },
		"far away":      func(n *Near) error { n.Rows[0] = 1 << 31; return nil },
	}
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			held, plain, copies := heldIndexes(t, 1e-4)
			(*copies)[0].spoil = lie
			requireSame(t, held, plain)
			lied := what != "fails" && what != "forgets the best" && what != "has nothing"
			require.Equal(t, lied, (*copies)[0].asked.Load() == 1, "asked %d times", (*copies)[0].asked.Load())
		})
	}
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

// Few rows are scored at once; a copy ends with its segment.
func TestHeldSegmentsAreLetGo(t *testing.T) {
	held, _, copies := heldIndexes(t, 1e-3)
	r, err := held.Snapshot()
	require.NoError(t, err)
	dense(t, held, filter.SetOf(1, 2, 3), conformance.NewCorpus(rand.Uint64(), heldDims).Vector(), 3)
	require.Zero(t, (*copies)[0].asked.Load())
	require.NoError(t, held.Flush(t.Context()))
	require.NoError(t, held.Compact(t.Context()))
	require.False(t, (*copies)[0].closed.Load(), "a reader has it")
	r.Close()
	require.Equal(t, len(*copies) > 1, (*copies)[0].closed.Load())
}
