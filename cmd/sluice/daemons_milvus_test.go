package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/index/milvus"
	"sluice/index/text"
	"sluice/store/postgres"
)

// Three daemons on one database share the collections of one Milvus server: a
// revocation through one holds on all, a killed one takes nothing with it, one
// that starts with an empty directory, or after it was away, finds what the others
// find, and what a reindex leaves behind goes once and for all.
func daemonsOnMilvus(t *testing.T, address string) {
	before := onMilvus(t, address)
	f := newDeafFleet(t, settings{"milvus": []string{address}})
	f.search = client.SearchRequest{Query: tides.Query, K: tides.K, Strategy: "hybrid"}
	f.fill()
	f.obeysRevocation()
	f.survivesAKill(entries - 1)

	cluster, err := milvus.Connect(t.Context(), address)
	require.NoError(t, err)
	defer cluster.Close() //nolint:errcheck // it was only asked
	collections := func() []string {
		return slices.DeleteFunc(onMilvus(t, address), func(name string) bool { return slices.Contains(before, name) })
	}
	require.Len(t, collections(), 1, "all daemons have the same")

	dense := client.SearchRequest{Query: tides.Query, K: 100, Strategy: "dense"}
	same := func() {
		t.Helper()
		want, err := f.daemons[1].patient("ann").Search(t.Context(), "docs", dense)
		require.NoError(t, err)
		require.NotEmpty(t, want.Results)
		for _, i := range []int{0, 2} {
			got, err := f.daemons[i].patient("ann").Search(t.Context(), "docs", dense)
			require.NoError(t, err)
			require.Equal(t, keysOf(want), keysOf(got))
		}
	}
	root := f.daemons[2].patient("root")
	_, err = root.Write(t.Context(), "docs", note("5", "While one was away, the fifth entry was written anew.", "group:hr"))
	require.NoError(t, err)
	require.NoError(t, root.Delete(t.Context(), "docs", "6"))
	f.daemons[0] = f.serve("--store", f.url, "--data", f.path("data0"))
	same()

	analyzer, err := text.New(text.Default)
	require.NoError(t, err)
	left := milvus.Options{Name: milvusPrefix + "of_a_generation_that_is_gone", Dir: f.path("left"), Dimensions: 8, Analyzer: analyzer}
	left.Owner = milvus.Owner(f.identity(), 1<<20)
	foreign := left
	foreign.Name, foreign.Dir, foreign.Owner = milvusPrefix+"of_another_database", f.path("foreign"), milvus.Owner("another", 1)
	for _, o := range []milvus.Options{left, foreign} {
		ix, err := milvus.Open(t.Context(), []*milvus.Cluster{cluster}, o)
		require.NoError(t, err)
		require.NoError(t, ix.Close())
	}
	f.daemons[0].stop()
	f.daemons[0] = f.serve("--store", f.url, "--data", f.path("empty"))
	require.NotContains(t, collections(), left.Name)
	require.Contains(t, collections(), foreign.Name)
	require.Len(t, collections(), 2)
	same()

	reindexed := f.daemons[2].run("root", "reindex", "-c", "docs", "--chunker", "fixed/1", "--yes")
	require.Zero(t, reindexed.code, "%s", reindexed)
	require.Len(t, collections(), 3)
	same()
	for _, d := range f.daemons {
		d.stop()
	}
}

// identity is that of the fleet's database.
func (f *fleet) identity() string {
	st, err := postgres.Open(f.t.Context(), f.url, postgres.Options{})
	require.NoError(f.t, err)
	defer st.Close() //nolint:errcheck // it was only asked
	return st.ID()
}
