package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// everything is documents of every format, with every kind of access.
func everything() []client.Document {
	from, until := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return []client.Document{
		{Key: "md", Format: "markdown", Text: "---\ntags: x\n---\n# Harbour & co\n\nIt opens <b>at</b> six.\n\n## Fees\n\n- one\n- two", Readers: &[]string{"user:ann", "group:crew"}},
		{Key: "a/b ü", Format: "text", Title: "Tide", Text: "The tide turns at noon.\n\n# no heading", Readers: &[]string{}},
		{Key: "html", Format: "html", Text: "<title>Site</title><h1>Crane</h1><p>Lifts &lt;9&gt; tons."},
		{
			Key: "attributes", Format: "text", Text: "Nine.", Readers: &[]string{"public"}, Regions: []string{"eu", "us"}, ValidFrom: &from, ValidUntil: &until,
			Attributes: map[string]any{"level": 1 << 60, "open": true, "name": "x", "set": []string{"a", "b"}, "none": []string{}},
		},
	}
}

// ingested is a stopped daemon with the documents of the file, as "docs" of ann's tenant.
func ingested(t *testing.T, file string, collection string, flags ...string) *home {
	t.Helper()
	h := newHome(t, annAndBob)
	d := h.serve()
	r := d.run("ann", append([]string{"ingest", file, "-c", collection}, flags...)...)
	require.Zero(t, r.code, "%s", r)
	d.stop()
	return h
}

func dumpOf(t *testing.T, h *home, collection string) string {
	t.Helper()
	r := sluice(t, "dump", h.data(), "--tenant", "acme", "-c", collection)
	require.Zero(t, r.code, "%s", r)
	return r.out
}

// What is dumped can be ingested, and is then dumped as the same lines, byte for
// byte: text, title, access.
func TestADumpIsIngestedAgain(t *testing.T) {
	t.Parallel()
	h := ingested(t, jsonl(t, everything()...), "docs")
	first := dumpOf(t, h, "docs")
	require.Contains(t, first, `"format":"text","text":"Crane\n\nLifts <9> tons."`)
	require.Contains(t, first, `"none":[]`)
	require.Contains(t, first, `"level":1152921504606846976`)
	file := filepath.Join(lay(t, t.TempDir(), map[string]string{"dump.ndjson": first}), "dump.ndjson")
	again := ingested(t, file, "docs")
	require.ElementsMatch(t, strings.Split(first, "\n"), strings.Split(dumpOf(t, again, "docs"), "\n"), "lines are written side by side")

	before, after := h.serve(), again.serve()
	ask := client.SearchRequest{Query: "when does the harbour open", K: 10, Strategy: "hybrid-late", Explain: true}
	ask.Scope = &client.Scope{AnyRegion: true, AnyTime: true}
	want, err := before.as("ann").Search(t.Context(), "docs", ask)
	require.NoError(t, err)
	got, err := after.as("ann").Search(t.Context(), "docs", ask)
	require.NoError(t, err)
	require.Equal(t, want.Counts, got.Counts)
	require.Equal(t, "md", got.Results[0].Document)
	require.Equal(t, want.Results[0].Headings, got.Results[0].Headings)
	r := sluice(t, "dump", h.data())
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "make a snapshot and dump that")
	before.stop()
	after.stop()
}

// Vectors that documents brought are in the dump as far as they are kept.
func TestADumpOfOwnVectors(t *testing.T) {
	document := pagesOf("atlas", []string{"user:ann"}, "north snow bears", "south sand camels")
	for i := range document.Passages {
		document.Passages[i].Vector = client.Vector{Values: []float32{3, float32(i)}}
	}
	h := ingested(t, jsonl(t, document), "pages", "--dimensions", "2", "--multi-dimensions", "16")
	dumped := dumpOf(t, h, "pages")
	file := filepath.Join(lay(t, t.TempDir(), map[string]string{"dump.ndjson": dumped}), "dump.ndjson")
	again := ingested(t, file, "pages", "--dimensions", "2", "--multi-dimensions", "16")
	d, o := h.serve(), again.serve()
	ask := client.SearchRequest{Vectors: wordVectors("camels sand south"), Explain: true}
	want, err := d.as("ann").Search(t.Context(), "pages", ask)
	require.NoError(t, err)
	got, err := o.as("ann").Search(t.Context(), "pages", ask)
	require.NoError(t, err)
	require.Equal(t, hitsOf(want), hitsOf(got))
	for i := range want.Results {
		require.InDelta(t, want.Results[i].Score, got.Results[i].Score, 0.01)
	}
	d.stop()
	o.stop()
}

// All collections go into files with their names; which one is asked for if one
// does not say.
func TestADumpOfManyCollections(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]person{"ann": {tenant: "acme", roles: []string{"admin"}}, "eve": {tenant: "../x,y", roles: []string{"admin"}}})
	d := h.serve()
	for _, who := range []string{"ann", "eve"} {
		for _, name := range []string{"one", "two"} {
			d.collection(who, name)
			_, err := d.as(who).Write(t.Context(), name, note(who+name, "text"))
			require.NoError(t, err)
		}
	}
	d.stop()
	r := sluice(t, "snapshot", h.data(), "s")
	require.Zero(t, r.code, "%s", r)
	r = sluice(t, "dump", h.snapshot("s"), "-c", "one")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "one of tenant acme\n  one of tenant ../x,y")
	to := t.TempDir()
	r = sluice(t, "dump", h.snapshot("s"), "--to", to)
	require.Zero(t, r.code, "%s", r)
	entries, err := os.ReadDir(to)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"..%2Fx%2Cy,one.ndjson", "..%2Fx%2Cy,two.ndjson", "acme,one.ndjson", "acme,two.ndjson"}, names)
	text, err := os.ReadFile(filepath.Join(to, "..%2Fx%2Cy,two.ndjson"))
	require.NoError(t, err)
	require.JSONEq(t, `{"key":"evetwo","format":"text","text":"text","version":1}`, string(text))
	require.Equal(t, 1, sluice(t, "dump", h.data(), "--collection", "three").code)
}
