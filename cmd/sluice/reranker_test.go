package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// tinyReranker is a cross-encoder of random weights, with its tokenizer.
func tinyReranker(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny-judge")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../model/testdata/roberta_seqcls_e2e_bpe_roberta")))
	tokenizer, err := os.ReadFile("../../model/tokenizer/testdata/bpe_roberta/tokenizer.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o644))
	return dir
}

// The same daemon without a reranker, and with one.
func TestReranker(t *testing.T) {
	h := newHome(t, onePerson)
	search := func(d *served) client.SearchResponse {
		r, err := d.as("ann").Search(t.Context(), "c", client.SearchRequest{Query: "tides", Strategy: "hybrid-rerank", Explain: true})
		require.NoError(t, err)
		require.Len(t, r.Results, 2)
		return r
	}
	d := h.serve()
	_, err := d.as("ann").CreateCollection(t.Context(), "c", client.CollectionSettings{})
	require.NoError(t, err)
	for _, text := range []string{"The tides of the north sea.", "Ropes and tides."} {
		_, err := d.as("ann").Write(t.Context(), "c", client.Document{Key: text[:4], Format: "text", Text: text})
		require.NoError(t, err)
	}
	without := search(d)
	require.Equal(t, []string{"rerank_unavailable"}, without.Degraded)
	d.stop()

	judge := tinyReranker(t)
	d = h.serve("--reranker", judge)
	with := search(d)
	require.Empty(t, with.Degraded)
	require.NotEqual(t, without.Plan, with.Plan)
	for i, result := range with.Results {
		require.Equal(t, i+1, result.Explain.Legs["rerank"].Rank)
	}
	d.stop()

	require.Contains(t, h.refused("--model", judge).err, "name it as reranker")
	require.Contains(t, h.refused("--reranker", "../../model/testdata/bert_e2e_wordpiece_cased").err, "one label")
}
