package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/index/milvus"
	"sluice/index/milvus/milvustest"
	"sluice/index/text"
)

// TestMilvus has one real server, which each of the tests below leaves as it found it.
func TestMilvus(t *testing.T) {
	t.Parallel()
	address := milvustest.Serve(t)
	for name, test := range map[string]func(*testing.T, string){"alone": oneDaemonOnMilvus, "fleet": daemonsOnMilvus} {
		t.Run(name, func(t *testing.T) {
			before := onMilvus(t, address)
			t.Cleanup(func() { removeFromMilvus(t, address, before) })
			test(t, address)
		})
	}
}

// A daemon serves from Milvus what one with an embedded index serves: through
// writes, revocations, deletions and a restart. Then the check finds nothing, and
// nothing but what is another's.
func oneDaemonOnMilvus(t *testing.T, address string) {
	h := newHome(t, accessPeople, settings{"milvus": []string{address}})
	embedded := newHome(t, accessPeople).serve()
	d := h.serve()
	both := func(do func(*served)) {
		t.Helper()
		do(d)
		do(embedded)
	}
	both(func(s *served) {
		s.collection("root", "docs")
		for i := range 30 {
			readers := []string{"group:hr", "user:bob", "user:ann"}[i%3]
			_, err := s.as("root").Write(t.Context(), "docs", note(fmt.Sprint(i), fmt.Sprintf("Harbour entry %d of the tide ledger.", i), readers))
			require.NoError(t, err)
		}
	})
	same := func(where string) {
		t.Helper()
		for _, person := range []string{"ann", "bob", "eve"} {
			require.Equal(t, keysFound(t, embedded, person), keysFound(t, d, person), "%s: %s", where, person)
		}
	}
	same("written")
	require.Len(t, keysFound(t, d, "ann"), 20)
	both(func(s *served) {
		_, err := s.as("root").SetAccess(t.Context(), "docs", "0", client.AccessPatch{Readers: jsonOf([]string{"user:bob"})})
		require.NoError(t, err)
		err = s.as("root").Delete(t.Context(), "docs", "1")
		require.NoError(t, err)
		_, err = s.as("root").Write(t.Context(), "docs", note("2", "Quite another text about pilots.", "user:ann"))
		require.NoError(t, err)
	})
	same("changed")
	d.stop()
	r := sluice(t, "check", h.data(), "--milvus", address)
	require.Zero(t, r.code, "%s", r)
	leftOver(t, address, filepath.Join(h.data(), "milvus", "sluice_dropped_before_a_crash"))
	d = h.serve()
	same("started again")
	reindexed := d.run("root", "reindex", "-c", "docs", "--chunker", "fixed/1", "--yes")
	require.Zero(t, reindexed.code, "%s", reindexed)
	require.Zero(t, d.run("root", "reindex", "drop", "-c", "docs").code)
	d.stop()
	r = sluice(t, "check", h.data(), "--milvus", address)
	require.Zero(t, r.code, "a dropped generation leaves nothing\n%s", r)
	embedded.stop()

	other := newHome(t, accessPeople)
	s := other.serve()
	s.stop()
	r = sluice(t, "check", other.data(), "--milvus", address)
	require.Equal(t, 1, r.code, "%s", r)
	require.Contains(t, r.out, "is of no collection here")
}

// onMilvus are the names of the collections that are ours, or were.
func onMilvus(t *testing.T, address string) []string {
	t.Helper()
	cluster, err := milvus.Connect(context.Background(), address) // the test's own context may have ended
	require.NoError(t, err)
	names, err := cluster.Collections(context.Background(), milvusPrefix)
	require.NoError(t, errors.Join(err, cluster.Close()))
	return names
}

// removeFromMilvus removes those that were not there before.
func removeFromMilvus(t *testing.T, address string, before []string) {
	ctx := context.Background()
	cluster, err := milvus.Connect(ctx, address)
	require.NoError(t, err)
	for _, name := range onMilvus(t, address) {
		if !slices.Contains(before, name) {
			err = errors.Join(err, milvus.Remove(ctx, []*milvus.Cluster{cluster}, milvus.Options{Name: name, Dir: filepath.Join(t.TempDir(), name)}))
		}
	}
	require.NoError(t, errors.Join(err, cluster.Close()))
}

// leftOver makes an index of no generation.
func leftOver(t *testing.T, address, dir string) {
	t.Helper()
	cluster, err := milvus.Connect(t.Context(), address)
	require.NoError(t, err)
	analyzer, err := text.New(text.Default)
	require.NoError(t, err)
	ix, err := milvus.Open(t.Context(), []*milvus.Cluster{cluster}, milvus.Options{Name: filepath.Base(dir), Dir: dir, Dimensions: 8, Analyzer: analyzer})
	require.NoError(t, err)
	require.NoError(t, errors.Join(ix.Close(), cluster.Close()))
}

// keysFound are the documents that a search finds, best first.
func keysFound(t *testing.T, s *served, person string) (keys []string) {
	t.Helper()
	answer, err := s.as(person).Search(t.Context(), "docs", client.SearchRequest{Query: "entry of the ledger", K: 50, Strategy: "dense"})
	if person == "eve" {
		require.Error(t, err)
		return nil
	}
	require.NoError(t, err)
	require.Empty(t, answer.Degraded)
	for _, hit := range answer.Results {
		keys = append(keys, hit.Document)
	}
	return keys
}
