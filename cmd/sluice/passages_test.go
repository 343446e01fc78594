package main

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

const wordDimensions = 16

// wordVectors are made-up token vectors: a direction for every word.
func wordVectors(text string) client.Matrix {
	m := client.Matrix{Columns: wordDimensions, Base64: len(text)%2 == 0}
	for _, word := range strings.Fields(text) {
		h := fnv.New64a()
		h.Write([]byte(word))
		random := rand.New(rand.NewPCG(h.Sum64(), 1))
		for range wordDimensions {
			m.Values = append(m.Values, float32(random.NormFloat64()))
		}
	}
	return m
}

// pagesOf is a document of pages that no model has seen. A page's picture says
// more than its text.
func pagesOf(key string, readers []string, pages ...string) client.Document {
	d := client.Document{Key: key, Title: key, Readers: &readers}
	for i, picture := range pages {
		text, _, _ := strings.Cut(picture, " ")
		p := client.Passage{Text: text, Vectors: wordVectors(picture)}
		if i > 0 {
			p.Headings = []string{"Page " + string(rune('1'+i))}
		}
		d.Passages = append(d.Passages, p)
	}
	return d
}

func jsonl(t *testing.T, documents ...client.Document) string {
	t.Helper()
	var lines strings.Builder
	for _, d := range documents {
		require.NoError(t, json.NewEncoder(&lines).Encode(d))
	}
	return lay(t, t.TempDir(), map[string]string{"pages.jsonl": lines.String()}) + "/pages.jsonl"
}

func hitsOf(r client.SearchResponse) (hits []string) {
	for _, hit := range r.Results {
		hits = append(hits, hit.Document+": "+strings.Join(hit.Headings, " > "))
	}
	return hits
}

// Pages with vectors of their own go the whole way: command line, daemon, kill,
// restart, rebuilt index; for those who may read them, and for nobody else.
func TestPagesWithOwnVectors(t *testing.T) {
	t.Parallel()
	people := map[string]person{
		"ann": {tenant: "acme", roles: []string{"admin"}}, "bob": {tenant: "acme", roles: []string{"read"}},
		"eve": {tenant: "rival", roles: []string{"admin"}},
	}
	h := newHome(t, people)
	d := h.serve()
	file := jsonl(t,
		pagesOf("atlas", []string{"user:ann"}, "north snow bears", "south sand camels", "east tea silk"),
		pagesOf("ledger", []string{"user:ann", "user:bob"}, "camels bought sand sold"))
	r := d.run("ann", "ingest", file, "-c", "pages", "--multi-dimensions", "16")
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "2 created; 4 chunks in ")
	r = d.run("ann", "ingest", file, "-c", "pages")
	require.Contains(t, r.out, "2 unchanged", "%s", r)

	camels := client.SearchRequest{Vectors: wordVectors("camels sand south"), Explain: true}
	ask := func(who string, q client.SearchRequest) client.SearchResponse {
		t.Helper()
		answer, err := d.as(who).Search(t.Context(), "pages", q)
		require.NoError(t, err)
		require.Empty(t, answer.Degraded)
		return answer
	}
	first := ask("ann", camels)
	require.Equal(t, "late", first.Strategy)
	require.Equal(t, []string{"atlas: atlas > Page 2", "ledger: ledger"}, hitsOf(first)[:2])
	require.Len(t, first.Results, 4)
	require.InDelta(t, 1, first.Results[0].Score, 0.02)
	require.Equal(t, "south", first.Results[0].Text)
	require.Equal(t, []string{"ledger: ledger"}, hitsOf(ask("bob", camels)))
	require.Equal(t, 1, ask("bob", camels).Counts.Visible)
	_, err := d.as("eve").Search(t.Context(), "pages", camels)
	require.ErrorContains(t, err, "no such collection")

	for _, strategy := range []string{"", "dense", "hybrid", "hybrid-late", "sparse"} {
		camels.Strategy, camels.Query = strategy, "south"
		require.Equal(t, "atlas: atlas > Page 2", hitsOf(ask("ann", camels))[0], strategy)
		require.NotContains(t, strings.Join(hitsOf(ask("bob", camels)), " "), "atlas", strategy)
	}
	camels.Strategy, camels.Query = "", ""

	queryFile := lay(t, t.TempDir(), map[string]string{"q.json": `{"vectors":` + jsonText(t, wordVectors("bears")) + `}`}) + "/q.json"
	r = d.run("ann", "search", "-c", "pages", "--vectors", queryFile, "-k", "1")
	require.Zero(t, r.code, "%s", r)
	require.Regexp(t, `^ 1\. atlas  \(atlas, version 1`, r.out)

	d.kill()
	d = h.serve()
	require.Equal(t, first, ask("ann", camels), "after kill -9, to the bit")
	_, err = d.as("ann").SetAccess(t.Context(), "pages", "ledger", client.AccessPatch{Readers: json.RawMessage(`["user:ann"]`)})
	require.NoError(t, err)
	require.Empty(t, ask("bob", camels).Results, "revoked")
	d.stop()
	require.NoError(t, os.RemoveAll(indexDir(h.data())))
	d = h.serve()
	require.Equal(t, first.Results, ask("ann", camels).Results, "with an index built again")
	require.Empty(t, ask("bob", camels).Results)
	d.stop()
	check := sluice(t, "check", h.data())
	require.Zero(t, check.code, "%s", check)
}

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// One bad document is told from its neighbours, and a collection of the model
// from one of vectors.
func TestBadPagesHarmNoNeighbours(t *testing.T) {
	t.Parallel()
	d := newHome(t, onePerson).serve()
	ann := d.as("ann")
	_, err := ann.CreateCollection(t.Context(), "both", client.CollectionSettings{OwnVectors: &client.OwnVectors{Dimensions: 2, MultiDimensions: wordDimensions}})
	require.NoError(t, err)
	good := pagesOf("good", []string{"user:ann"}, "north bears")
	good.Passages[0].Vector = client.Vector{Values: []float32{0, 3}}
	bad := pagesOf("bad", []string{"user:ann"}, "north bears")
	zeros := good
	zeros.Key, zeros.Passages = "zeros", []client.Passage{{Vector: client.Vector{Values: []float32{0, 0}}, Vectors: wordVectors("x")}}
	r := d.run("ann", "ingest", jsonl(t, bad, good, zeros, note("note", "text")), "-c", "both")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.out, "1 created, 3 failed")
	require.Contains(t, r.err, "failed bad: passage 1: vector: 0 numbers; the collection's have 2")
	require.Contains(t, r.err, "nothing but zeros")
	require.Contains(t, r.err, "failed note: the documents of this collection bring their vectors")

	answer, err := ann.Search(t.Context(), "both", client.SearchRequest{Vector: client.Vector{Values: []float32{1, 1}}})
	require.NoError(t, err)
	require.Equal(t, []string{"good"}, []string{answer.Results[0].Document})
	require.Equal(t, "dense", answer.Strategy)
	require.InDelta(t, 0.7071, answer.Results[0].Score, 1e-4)
	for says, q := range map[string]client.SearchRequest{
		"the strategy hybrid-late needs vector": {Query: "north", Strategy: "hybrid-late"},
		"the strategy late needs vectors":       {Query: "north", Strategy: "late"},
		"vector: 3 numbers":                     {Vector: client.Vector{Values: []float32{1, 2, 3}}},
		"vectors: 1 numbers each":               {Vectors: client.Matrix{Values: []float32{1}, Columns: 1}},
	} {
		_, err := ann.Search(t.Context(), "both", q)
		require.ErrorContains(t, err, says)
	}
	r = d.run("ann", "ingest", jsonl(t, good), "-c", "of-the-model")
	require.Contains(t, r.err, "the vectors of this collection are the model's")
	d.stop()
}
