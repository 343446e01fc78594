package milvus

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"sluice/index"
	"sluice/index/conformance"
)

// counted is a client that counts the rows that it writes.
type counted struct {
	client.Client
	rows *atomic.Int64
}

func (c counted) Upsert(ctx context.Context, name, partition string, columns ...entity.Column) (entity.Column, error) {
	c.rows.Add(int64(columns[0].Len()))
	return c.Client.Upsert(ctx, name, partition, columns...)
}

// member is the index of one daemon of several.
type member struct {
	*Index
	clusters   []*Cluster
	options    Options
	wrote      *atomic.Int64
	storeEpoch uint64 // of the store, as it says
}

// members open the same index at the same time, each with a directory of its own.
func members(t *testing.T, n int) (all []*member) {
	o := optionsAt(t, t.TempDir(), 8)
	o.Shared, o.Owner = time.Hour, "the tests"
	for range n {
		m := &member{options: o, wrote: new(atomic.Int64)}
		m.options.Epoch = func(context.Context) (uint64, error) { return m.storeEpoch, nil }
		c := cluster(t)
		c.searching = counted{c.searching, m.wrote}
		m.clusters, m.options.Dir = []*Cluster{c}, t.TempDir()
		all = append(all, m)
	}
	var opening errgroup.Group
	for _, m := range all {
		opening.Go(func() error { return m.open(t) })
	}
	require.NoError(t, opening.Wait())
	t.Cleanup(func() {
		for _, m := range all {
			require.NoError(t, m.Close())
		}
		require.NoError(t, Remove(context.Background(), all[0].clusters, o))
	})
	return all
}

// pair are two members with the same documents, all written by the first, ordinals
// from 0.
func pair(t *testing.T, n uint32, made *conformance.Corpus) (first, second *member, documents []index.Document) {
	all := members(t, 2)
	for ordinal := range n {
		documents = append(documents, made.RareDocument(ordinal))
	}
	require.NoError(t, all[0].Apply(t.Context(), index.Batch{Epoch: 1, Put: documents}))
	require.NoError(t, all[1].Apply(t.Context(), index.Batch{Epoch: 1, Put: elsewhere(documents)}))
	return all[0], all[1], documents
}

// rewritten is another version of a document.
func rewritten(made *conformance.Corpus, ordinal uint32) index.Document {
	d := made.RareDocument(ordinal)
	for i := range d.Rows {
		d.Rows[i].Row += 10_000
	}
	return d
}

func (m *member) open(t *testing.T) (err error) {
	m.Index, err = Open(t.Context(), m.clusters, m.options)
	return err
}

// sweepNow is as if the time had passed in which others may need what is replaced.
func (m *member) sweepNow(t *testing.T) {
	m.mu.Lock()
	for i := range m.garbage {
		m.garbage[i].due = time.Time{}
	}
	m.mu.Unlock()
	require.NoError(t, m.sweep(t.Context()))
}

func elsewhere(documents []index.Document) (theirs []index.Document) {
	for _, d := range documents {
		d.Elsewhere = true
		theirs = append(theirs, d)
	}
	return theirs
}

// Every row is written by the daemon that took its document, or by another one
// where that does not; either way all find it.
func TestSharedRowsAreWrittenOnce(t *testing.T) {
	const seed, n, k = 23, 30, 200
	all, made := members(t, 3), conformance.NewCorpus(seed, 8)
	var documents []index.Document
	rows := 0
	for ordinal := range uint32(n) {
		d := made.RareDocument(ordinal)
		d.Class = uint64(ordinal % 5)
		documents, rows = append(documents, d), rows+len(d.Rows)
	}
	var waiting sync.WaitGroup
	for _, m := range all[1:] {
		m.clusters[0].patience = time.Minute
		waiting.Go(func() {
			if err := m.Apply(t.Context(), index.Batch{Epoch: 1, Put: elsewhere(documents)}); err != nil {
				t.Error(err)
			}
		})
	}
	require.NoError(t, all[0].Apply(t.Context(), index.Batch{Epoch: 1, Put: documents}))
	waiting.Wait()
	vector := made.Vector()
	want, err := dense(t, all[0].Index, everyone(n), vector, k)
	require.NoError(t, err)
	require.Len(t, want, rows)
	for _, m := range all[1:] {
		got, err := dense(t, m.Index, everyone(n), vector, k)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for i, want := range []int{rows, 0, 0} {
		require.EqualValues(t, want, all[i].wrote.Load(), "by daemon %d", i)
		all[i].clusters[0].patience = 0
	}

	orphan := made.RareDocument(n)
	require.NoError(t, all[1].Apply(t.Context(), index.Batch{Epoch: 2, Put: elsewhere([]index.Document{orphan})}))
	hits, err := dense(t, all[1].Index, everyone(n+1), vector, k)
	require.NoError(t, err)
	require.Len(t, hits, rows+len(orphan.Rows), "its daemon has died")
	wrote := all[2].wrote.Load()
	require.NoError(t, all[2].Apply(t.Context(), index.Batch{Epoch: 2, Put: elsewhere([]index.Document{orphan})}))
	require.Equal(t, wrote, all[2].wrote.Load(), "it is there")
}

// What one daemon has replaced stays as long as another may search it. One that
// comes back later finds that it is behind, and not that rows are lost; lost ones
// it does find.
func TestSharedRowsAreSweptLate(t *testing.T) {
	const seed, n, k = 29, 20, 200
	made := conformance.NewCorpus(seed, 8)
	ahead, behind, documents := pair(t, n, made)
	require.NoError(t, behind.Flush(t.Context()))
	vector := made.Vector()
	before, err := dense(t, behind.Index, everyone(n), vector, k)
	require.NoError(t, err)

	changed := rewritten(made, 3)
	require.NoError(t, ahead.Apply(t.Context(), index.Batch{Epoch: 2, Put: []index.Document{changed}}))
	require.NoError(t, ahead.Flush(t.Context()))
	require.NoError(t, ahead.sweep(t.Context()))
	still, err := dense(t, behind.Index, everyone(n), vector, k)
	require.NoError(t, err)
	require.Equal(t, before, still)

	require.NoError(t, behind.Close())
	ahead.sweepNow(t)
	held, err := ahead.shards[0].held(t.Context(), rowNumbers(documents[3]))
	require.NoError(t, err)
	require.Empty(t, held)
	require.NoError(t, behind.open(t))
	require.Equal(t, []uint32{3}, behind.Lacks())
	require.NoError(t, behind.Apply(t.Context(), index.Batch{Epoch: 2, Put: elsewhere([]index.Document{changed})}))
	want, err := dense(t, ahead.Index, everyone(n), vector, k)
	require.NoError(t, err)
	got, err := dense(t, behind.Index, everyone(n), vector, k)
	require.NoError(t, err)
	require.Equal(t, want, got)

	require.NoError(t, behind.Close())
	require.NoError(t, Forget(behind.options))
	require.NoError(t, behind.open(t))
	require.Zero(t, behind.Applied())
	wrote := behind.wrote.Load()
	documents[3] = changed
	require.NoError(t, behind.Apply(t.Context(), index.Batch{Put: documents}))
	require.NoError(t, behind.Apply(t.Context(), index.Batch{Epoch: 2}))
	require.Equal(t, wrote, behind.wrote.Load(), "a daemon without a directory takes over what is there")
	got, err = dense(t, behind.Index, everyone(n), vector, k)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A daemon that lags behind writes what a document has become since under an early
// epoch. Who finds such rows at the start does not take them for dead ones.
func TestSharedRowsOfTheFutureStay(t *testing.T) {
	const seed, n, k = 31, 20, 200
	made := conformance.NewCorpus(seed, 8)
	lagging, found, _ := pair(t, n, made)
	changed := rewritten(made, 3) // at epoch 5
	require.NoError(t, lagging.Apply(t.Context(), index.Batch{Epoch: 2, Put: []index.Document{changed}}))
	require.NoError(t, found.Apply(t.Context(), index.Batch{Epoch: 3}))
	require.NoError(t, found.Flush(t.Context()))
	require.NoError(t, found.Close())
	found.storeEpoch = 5
	require.NoError(t, found.open(t))
	found.sweepNow(t)
	require.NoError(t, found.Apply(t.Context(), index.Batch{Epoch: 5, Put: elsewhere([]index.Document{changed})}))
	require.NoError(t, found.Flush(t.Context()))
	found.sweepNow(t)
	vector := made.Vector()
	want, err := dense(t, found.Index, everyone(n), vector, k)
	require.NoError(t, err)
	got, err := dense(t, lagging.Index, everyone(n), vector, k)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Zero(t, found.wrote.Load(), "and nothing was written again")
}

// A collection that another daemon drops while they are listed is no error.
func TestOwners(t *testing.T) {
	m := members(t, 1)[0]
	name := m.shards[0].name
	c := &Cluster{searching: withGhost{m.clusters[0].searching, name + "_ghost"}}
	owners, err := c.owners(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, map[string]string{name: m.options.Owner}, owners)
}

// withGhost lists a collection that is there no more.
type withGhost struct {
	client.Client
	name string
}

func (g withGhost) ListCollections(ctx context.Context, o ...client.ListCollectionOption) ([]*entity.Collection, error) {
	all, err := g.Client.ListCollections(ctx, o...)
	return append(all, &entity.Collection{Name: g.name}), err
}
