package milvus

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/conformance"
)

// corpus fills an index with documents 0 … n-1, of a few classes.
func corpus(t *testing.T, ix *Index, c *conformance.Corpus, n uint32) (documents []index.Document) {
	t.Helper()
	for ordinal := range n {
		d := c.RareDocument(ordinal)
		d.Class = uint64(ordinal % 7)
		documents = append(documents, d)
	}
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: documents}))
	return documents
}

func dense(t *testing.T, ix *Index, allowed filter.Set, vector []float32, k int) ([]index.Hit, error) {
	t.Helper()
	r, err := ix.Reader()
	require.NoError(t, err)
	defer r.Close()
	return r.Dense(t.Context(), allowed, vector, k)
}

func everyone(n uint32) filter.Set {
	var ordinals []uint32
	for ordinal := range n {
		ordinals = append(ordinals, ordinal)
	}
	return filter.SetOf(ordinals...)
}

// Spread over clusters, an index answers as on one. With one of them down the
// answer is an error, or says that it is not whole.
func TestShards(t *testing.T) {
	const seed, n, k = 3, 120, 40
	all := clusters(t, 3)
	c := conformance.NewCorpus(seed, 8)
	one := opened(t, all[:1], optionsAt(t, t.TempDir(), 8))
	o := optionsAt(t, t.TempDir(), 8)
	three := opened(t, all, o)
	documents := corpus(t, one, c, n)
	require.NoError(t, three.Apply(t.Context(), index.Batch{Epoch: 1, Put: documents}))
	for i, s := range three.shards {
		require.Greater(t, s.classes.all.GetCardinality(), uint64(n/6), "documents of cluster %d of 3", i)
	}
	for range 5 {
		allowed, vector := c.Set(n), c.Vector()
		want, err := dense(t, one, allowed, vector, k)
		require.NoError(t, err)
		got, err := dense(t, three, allowed, vector, k)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
	}

	for range failuresToOpen {
		all[1].breaker.leave(context.DeadlineExceeded)
	}
	_, err := dense(t, three, everyone(n), c.Vector(), k)
	require.ErrorIs(t, err, index.ErrUnavailable)
	require.Error(t, all[1].Ready())
	require.NoError(t, three.Flush(t.Context()))
	all[1].breaker.leave(nil)
	o.Partial = true
	require.NoError(t, three.Close())
	partial, err := Open(t.Context(), all, o)
	require.NoError(t, err)
	for range failuresToOpen {
		all[1].breaker.leave(context.DeadlineExceeded)
	}
	hits, err := dense(t, partial, everyone(n), c.Vector(), k)
	require.ErrorIs(t, err, index.ErrPartial)
	require.Len(t, hits, k)
	for _, h := range hits {
		require.NotEqual(t, 1, partial.shardOf(h.Ordinal), fmt.Sprint(h))
	}
	all[1].breaker.leave(nil)
	require.NoError(t, partial.Close())
}

// A server that has lost rows gives an error, never a short answer.
func TestLostRows(t *testing.T) {
	const n = 30
	c := conformance.NewCorpus(4, 8)
	o := optionsAt(t, t.TempDir(), 8)
	ix := opened(t, []*Cluster{cluster(t)}, o)
	documents := corpus(t, ix, c, n)
	lost := documents[5]
	require.NoError(t, ix.shards[0].delete(t.Context(), rowNumbers(lost)))
	_, err := dense(t, ix, filter.SetOf(lost.Ordinal, 6), c.Vector(), 100)
	require.ErrorIs(t, err, index.ErrUnavailable)
	require.ErrorContains(t, err, "lacks row")
	hits, err := dense(t, ix, filter.SetOf(6), c.Vector(), 100)
	require.NoError(t, err)
	require.Len(t, hits, len(documents[6].Rows))
	require.NoError(t, ix.Flush(t.Context()))
	require.NoError(t, ix.Close())
	_, err = Open(t.Context(), []*Cluster{cluster(t)}, o)
	require.ErrorIs(t, err, index.ErrRebuild)
}

// Rows that are there already are taken over, and others replaced, when an index
// is filled again without its directory.
func TestFilledAgain(t *testing.T) {
	const n, k = 40, 60
	c := conformance.NewCorpus(5, 8)
	o := optionsAt(t, t.TempDir(), 8)
	ix := opened(t, []*Cluster{cluster(t)}, o)
	documents := corpus(t, ix, c, n)
	vector := c.Vector()
	want, err := dense(t, ix, everyone(n), vector, k)
	require.NoError(t, err)
	o.Dir = t.TempDir()
	again := opened(t, []*Cluster{cluster(t)}, o)
	require.Zero(t, again.Applied())
	documents[3].Rows[0].Vector = c.Vector() // of the same number, in a store that went another way
	require.NoError(t, again.Apply(t.Context(), index.Batch{Put: documents[:n/2]}))
	require.NoError(t, again.Apply(t.Context(), index.Batch{Put: documents[n/2:]}))
	require.NoError(t, again.Apply(t.Context(), index.Batch{Epoch: 2}))
	require.Empty(t, again.shards[0].unclaimed)
	got, err := dense(t, again, everyone(n), vector, k)
	require.NoError(t, err)
	score := func(hits []index.Hit, ordinal uint32) (of []float32) {
		for _, h := range hits {
			if h.Ordinal == ordinal {
				of = append(of, h.Score)
			}
		}
		return of
	}
	for ordinal := range uint32(10) {
		if ordinal != 3 {
			require.Subset(t, append(score(want, ordinal), score(got, ordinal)...), score(got, ordinal))
		}
	}
	stored, err := again.shards[0].vectors(t.Context(), rowNumbers(documents[3]))
	require.NoError(t, err)
	require.Equal(t, documents[3].Rows[0].Vector, stored[documents[3].Rows[0].Row])
}
