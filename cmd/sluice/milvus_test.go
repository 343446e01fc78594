package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/index/milvus"
	"sluice/index/milvus/milvustest"
	"sluice/index/text"
)

// TestMilvus serves from a real Milvus server what a daemon with an embedded index
// serves: through writes, revocations, deletions and a restart. Then the check
// finds nothing, and nothing but what is another's.
func TestMilvus(t *testing.T) {
	t.Parallel()
	address := milvustest.Serve(t)
	h := newHome(t, accessPeople, settings{"milvus": []string{address}})
	t.Cleanup(func() { removeIndexes(t, address, filepath.Join(h.data(), "milvus")) })
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

// removeIndexes leaves nothing on a server of the indexes in a directory.
func removeIndexes(t *testing.T, address, dir string) {
	ctx := context.Background() // the test's has ended
	cluster, err := milvus.Connect(ctx, address)
	require.NoError(t, err)
	indexes, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, one := range indexes {
		require.NoError(t, milvus.Remove(ctx, []*milvus.Cluster{cluster}, milvus.Options{Name: filepath.Base(one), Dir: one}))
	}
	require.NoError(t, cluster.Close())
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
