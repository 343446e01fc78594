package milvus

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/conformance"
)

// asked is a client that shows a test each filter, and sends what the test makes of it.
type asked struct {
	client.Client
	filter func(string) string
}

func (a asked) Search(ctx context.Context, name string, partitions []string, filter string, fields []string, vectors []entity.Vector, field string, metric entity.MetricType, n int, p entity.SearchParam, o ...client.SearchQueryOptionFunc) ([]client.SearchResult, error) {
	return a.Client.Search(ctx, name, partitions, a.filter(filter), fields, vectors, field, metric, n, p, o...)
}

func (a asked) Query(ctx context.Context, name string, partitions []string, filter string, fields []string, o ...client.SearchQueryOptionFunc) (client.ResultSet, error) {
	return a.Client.Query(ctx, name, partitions, a.filter(filter), fields, o...)
}

func (a asked) Delete(ctx context.Context, name, partition, filter string) error {
	return a.Client.Delete(ctx, name, partition, a.filter(filter))
}

// askedCluster is the real server, seen through that.
func askedCluster(t *testing.T, filter func(string) string) *Cluster {
	c := cluster(t)
	c.searching, c.deleting = asked{c.searching, filter}, asked{c.deleting, filter}
	return c
}

// A document of more rows than an expression may name is written, verified, taken
// over by an index that is filled again, compared, repaired and deleted in parts.
func TestDocumentOfManyRows(t *testing.T) {
	const bound, n = 7, 40
	c := askedCluster(t, func(filter string) string {
		require.Less(t, strings.Count(filter, ","), bound, filter)
		return filter
	})
	c.perCall = bound
	clusters, o := []*Cluster{c}, optionsAt(t, t.TempDir(), 8)
	made := conformance.NewCorpus(11, 8)
	long := index.Document{Ordinal: 3}
	for row := range uint32(n) {
		long.Rows = append(long.Rows, index.Row{Row: row, Text: "harbour", Vector: made.Vector()})
	}
	ix := opened(t, clusters, o)
	require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 1, Put: []index.Document{long}}))
	hits, err := dense(t, ix, filter.SetOf(3), made.Vector(), n)
	require.NoError(t, err)
	require.Len(t, hits, n)

	o.Dir = t.TempDir()
	again := opened(t, clusters, o)
	require.NoError(t, again.Apply(t.Context(), index.Batch{Epoch: 1, Put: []index.Document{long}}))
	require.Empty(t, again.shards[0].unclaimed, "rows that are there are taken over")

	long.Rows[n-1].Vector = made.Vector()
	for _, faults := range []int{1, 0} {
		found := 0
		require.NoError(t, Compare(t.Context(), clusters, o, one(long), true, func(string) { found++ }))
		require.Equal(t, faults, found)
	}
	require.NoError(t, again.Apply(t.Context(), index.Batch{Epoch: 2, Delete: []uint32{3}}))
	require.NoError(t, again.Flush(t.Context()))
	require.NoError(t, again.Close()) // sweeps
	left, err := again.shards[0].count(t.Context(), between(rowField, 0, n))
	require.NoError(t, err)
	require.Zero(t, left)
}

func one(d index.Document) func(func(index.Document, error) bool) {
	return func(yield func(index.Document, error) bool) { yield(d, nil) }
}

// What admits nothing never reaches the server, where it would match everything.
func TestNothingIsNotAsked(t *testing.T) {
	c := &collection{Cluster: &Cluster{}} // without a client
	for _, e := range []expression{{}, in(documentField, []uint32{}), in(classField, []int64(nil)).or(expression{})} {
		hits, err := c.search(t.Context(), e, []float32{1, 0}, 10)
		require.NoError(t, err)
		require.Empty(t, hits)
		rows, err := c.query(t.Context(), e)
		require.NoError(t, err)
		require.Empty(t, rows)
		n, err := c.count(t.Context(), e)
		require.NoError(t, err)
		require.Zero(t, n)
	}

	const n = 20
	calls := 0
	ix := opened(t, []*Cluster{askedCluster(t, func(filter string) string { calls++; return filter })}, optionsAt(t, t.TempDir(), 8))
	made := conformance.NewCorpus(17, 8)
	corpus(t, ix, made, n)
	calls = 0
	for _, allowed := range []filter.Set{{}, filter.SetOf(), filter.SetOf(n, n+1)} {
		hits, err := dense(t, ix, allowed, made.Vector(), 10)
		require.NoError(t, err)
		require.Empty(t, hits)
	}
	require.Zero(t, calls)
	_, err := dense(t, ix, filter.SetOf(1), made.Vector(), 10)
	require.NoError(t, err)
	require.NotZero(t, calls)
}

// A Set of nearly everything keeps the rest out, in each way in which it can be
// asked for, and also from a server that ignores every filter.
func TestNearlyEverything(t *testing.T) {
	const n, k = 60, 500
	deaf := false
	ix := opened(t, []*Cluster{askedCluster(t, func(filter string) string {
		if deaf && !strings.HasPrefix(filter, string(rowField)) { // rows are fetched by name
			return everything().String()
		}
		return filter
	})}, optionsAt(t, t.TempDir(), 8))
	made := conformance.NewCorpus(19, 8)
	documents := corpus(t, ix, made, n)
	rows := func(all []index.Document) (numbers []uint32) {
		for _, d := range all {
			numbers = append(numbers, rowNumbers(d)...)
		}
		slices.Sort(numbers)
		return numbers
	}
	found := func(e expression) (numbers []uint32) {
		hits, err := ix.shards[0].search(t.Context(), e, made.Vector(), k)
		require.NoError(t, err)
		for _, h := range hits {
			numbers = append(numbers, h.row)
		}
		slices.Sort(numbers)
		return numbers
	}
	kept := slices.Concat(documents[:7], documents[8:30], documents[31:])
	require.Equal(t, rows(kept), found(notIn(documentField, []uint32{7, 30})))
	require.Equal(t, rows(documents), found(notIn(documentField, []uint32{})))
	require.Equal(t, rows(documents), found(everything()))

	var allowed []uint32
	for _, d := range kept {
		allowed = append(allowed, d.Ordinal)
	}
	for _, deaf = range []bool{false, true} {
		for _, set := range []filter.Set{filter.SetOf(allowed...), filter.SetOf(7), filter.SetOf(allowed[:n/2]...)} {
			for _, k := range []int{3, k} {
				hits, err := dense(t, ix, set, documents[7].Rows[0].Vector, k)
				require.NoError(t, err)
				require.NotEmpty(t, hits)
				for _, h := range hits {
					require.True(t, set.Contains(h.Ordinal), "document %d", h.Ordinal)
				}
			}
		}
	}
}
