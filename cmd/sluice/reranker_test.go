package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
	t.Parallel()
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
	require.Contains(t, h.refused("--reranker", "../../model/testdata/bert_e2e_wordpiece_cased").err, "not a sequence classifier")
}

// tinyClassifier has three labels and the tokens that it knows.
func tinyClassifier(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny-moods")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../model/testdata/bert_seqcls_3")))
	data, err := os.ReadFile("../../model/tokenizer/testdata/wordpiece_cased/tokenizer.json")
	require.NoError(t, err)
	var tokenizer map[string]any
	require.NoError(t, json.Unmarshal(data, &tokenizer))
	vocabulary := tokenizer["model"].(map[string]any)["vocab"].(map[string]any)
	for token, id := range vocabulary {
		if id.(float64) >= 500 {
			delete(vocabulary, token)
		}
	}
	data, err = json.Marshal(tokenizer)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o644))
	return dir
}

// A classifier of several labels serves /predict, and is no reranker.
func TestClassifier(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	moods := tinyClassifier(t)
	d := h.serve("--classifier", moods)
	var labels []client.Prediction
	require.Equal(t, http.StatusOK, d.post("/predict", `{"inputs":["the tides","and ropes"]}`, &labels))
	require.Len(t, labels, 3)
	require.InDelta(t, 1, labels[0].Score+labels[1].Score+labels[2].Score, 1e-5)
	require.GreaterOrEqual(t, labels[0].Score, labels[1].Score)
	require.Equal(t, http.StatusFailedDependency, d.post("/rerank", `{"query":"tides","texts":["ropes"]}`, nil))
	d.stop()
	require.Contains(t, h.refused("--reranker", moods).err, "3 labels")
}

// post sends a body as ann and reads an answer that is OK.
func (s *served) post(path, body string, out any) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.home.keys["ann"])
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		require.NoError(s.t, json.NewDecoder(response.Body).Decode(out))
	}
	return response.StatusCode
}
