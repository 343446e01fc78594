package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

var onePerson = map[string]person{"ann": {tenant: "acme", roles: []string{"admin"}}}

// Whoever may not write is told that nothing was written, and what to do.
func TestIngestWithoutTheRole(t *testing.T) {
	t.Parallel()
	d := newHome(t, map[string]person{"ann": {tenant: "acme", roles: []string{"admin"}}, "bob": {tenant: "acme", roles: []string{"read"}}}).serve()
	dir := lay(t, t.TempDir(), map[string]string{"a.md": "# A", "b.md": "# B", "c.md": "# C"})
	r := d.run("bob", "ingest", dir, "-c", "docs")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "the collection docs is not there, or not for you; creating it: Forbidden: your role does not allow this: it is read, and admin is needed (here: --api-key")

	d.collection("ann", "docs")
	r = d.run("bob", "ingest", dir, "-c", "docs")
	require.Equal(t, 1, r.code)
	for _, line := range []string{"3 of 3 documents not written: ", "it is read, and write is needed (here: --api-key"} {
		require.Contains(t, r.err, line)
	}
}

func TestIngestFolder(t *testing.T) {
	t.Parallel()
	d := newHome(t, onePerson).serve()
	dir := mixed(t)

	r := d.run("ann", "ingest", dir, "--collection", "docs", "--reader", "user:ann")

	require.Equal(t, 1, r.code, "%s", r)
	require.Contains(t, r.out, "3 created, 3 failed; 3 chunks in ")
	for _, line := range []string{
		`2 skipped: hidden: .`, "1 skipped: empty: empty.md\n", `1 skipped: larger than 64 MiB: huge.md`, `3 skipped: not a regular file: link.md, linked, pipe.md`,
		`1 skipped: not Markdown, HTML, text, PDF, an office file or .docling.json (".csv"): `,
	} {
		require.Equal(t, 1, strings.Count(r.out, line), line)
	}
	require.Equal(t, 1, strings.Count(r.out, "empty.md"), "told once")
	for _, line := range []string{
		`failed latin.txt: it is not valid UTF-8`, `failed blank.md: `, `name is not valid UTF-8`,
		`sluice: 3 of 6 documents failed`,
	} {
		require.Contains(t, r.err, line)
	}
	for key, words := range map[string]string{"a.md": "harbour", "sub/b.html": "tide", "sub/deeper/C.TXT": "crane"} {
		require.Equal(t, []string{key}, found(t, d.as("ann"), "docs", words))
	}

	r = d.run("ann", "ingest", dir, "--collection", "docs", "--reader", "user:ann")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.out, "3 failed, 3 unchanged; ")

	good := lay(t, t.TempDir(), map[string]string{"a.md": "# Harbour\n\nThe harbour opens at six."})
	r = d.run("ann", "ingest", good, "--collection", "docs", "--reader", "user:bob")
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "1 access_updated; ")
	require.Empty(t, found(t, d.as("ann"), "docs", "harbour"))

	r = d.run("ann", "ingest", filepath.Join(good, "a.md"), "--collection", "docs")
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "1 unchanged; ", "the readers are those that were given")
	lay(t, good, map[string]string{"a.md": "# Harbour\n\nThe harbour opens at seven."})
	r = d.run("ann", "ingest", good, "--collection", "docs")
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "1 updated; ")
	require.Empty(t, found(t, d.as("ann"), "docs", "harbour"), "not even with new content")
	d.stop()
}

func TestIngestIsRefused(t *testing.T) {
	t.Parallel()
	people := map[string]person{
		"ann": {tenant: "acme", roles: []string{"admin"}},
		"bob": {tenant: "acme", roles: []string{"read"}},
		"cyd": {tenant: "acme", roles: []string{"write"}},
	}
	d := newHome(t, people).serve()
	good := lay(t, t.TempDir(), map[string]string{"a.md": "# Harbour"})
	for what, c := range map[string]struct {
		as   string
		args []string
		says string
	}{
		"a reader":             {"bob", []string{good, "-c", "reader"}, "Forbidden"},
		"a writer who creates": {"cyd", []string{good, "-c", "writer"}, "Forbidden"},
		"a bad name":           {"ann", []string{good, "-c", "a/b"}, "a collection's name is"},
		"a missing folder":     {"ann", []string{good + "x", "-c", "docs"}, "no such file"},
		"an empty folder":      {"ann", []string{t.TempDir(), "-c", "docs"}, "has no files"},
		"lines that are none":  {"ann", []string{filepath.Join(lay(t, t.TempDir(), map[string]string{"d.jsonl": `{"key": 5}` + "\n" + `{"key": "k", "format": "text", "text": "ships"}` + "\n" + `no`}), "d.jsonl"), "-c", "docs"}, "sluice: 2 of 3 documents failed"},
		"a bad reader":         {"ann", []string{good, "-c", "docs", "--reader", "ann"}, "must be \"user:"},
	} {
		r := d.run(c.as, append([]string{"ingest"}, c.args...)...)
		require.Equal(t, 1, r.code, what)
		require.Contains(t, r.err, c.says, what)
	}
	r := sluice(t, "ingest", good, "-c", "docs", "--server", d.url, "--api-key", "wrong")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "Unauthorized")
	r = sluice(t, "ingest", good, "-c", "docs", "--server", "http://127.0.0.1:1", "--api-key", "wrong")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "connection refused")
}

func TestSearchOutput(t *testing.T) {
	t.Parallel()
	people := map[string]person{
		"ann": {tenant: "acme", roles: []string{"admin"}},
		"bob": {tenant: "acme", roles: []string{"read"}},
	}
	d := newHome(t, people, pretrained(t)).serve()
	d.collection("ann", "docs")
	ann := d.as("ann")
	for key, text := range map[string]string{"harbour.md": "# Harbour\n\n## Hours\n\nThe harbour opens at six.", "crane.md": "# Crane\n\nThe crane lifts nine tons."} {
		_, err := ann.Write(t.Context(), "docs", client.Document{Key: key, Format: "markdown", Text: text, Readers: &[]string{"user:ann"}})
		require.NoError(t, err)
	}
	for _, strategy := range []string{"sparse", "dense", "hybrid"} {
		r := d.run("ann", "search", "When does the harbour open?", "-c", "docs", "-k", "1", "--strategy", strategy, "--explain")
		require.Zero(t, r.code, "%s", r)
		require.Regexp(t, regexp.MustCompile(`(?s)^ 1\. Harbour > Hours  \(harbour\.md, version 1, score -?\d+\.\d{4}\)\n    The harbour opens at six\.\n    (dense|lexical): rank 1, score `), r.out)
	}
	r := d.run("ann", "search", "harbour", "-c", "docs", "--json")
	require.Zero(t, r.code, "%s", r)
	var response client.SearchResponse
	require.NoError(t, json.Unmarshal([]byte(r.out), &response))
	require.Equal(t, 2, response.Counts.Visible)
	require.Equal(t, "harbour.md", response.Results[0].Document)

	r = d.run("bob", "search", "harbour", "-c", "docs")
	require.Zero(t, r.code, "%s", r)
	require.Equal(t, "nothing found that you may read\n", r.out)

	r = d.run("ann", "search", "harbour", "-c", "nowhere")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "there is no such collection or document, or you may not read it")
	r = d.run("ann", "search", "harbour", "-c", "docs", "--strategy", "magic")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "sparse dense hybrid")
	r = d.run("ann", "search", "harbour", "-c", "docs", "-k", "101")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "-k 101")
	r = d.run("ann", "search", strings.Repeat("a", 9000), "-c", "docs")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "query: longer than")
}
