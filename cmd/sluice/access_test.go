package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

var accessPeople = map[string]person{
	"root": {tenant: "acme", roles: []string{"admin"}},
	"ann":  {tenant: "acme", roles: []string{"read"}, groups: []string{"hr"}},
	"bob":  {tenant: "acme", roles: []string{"write"}},
	"eve":  {tenant: "globex", roles: []string{"admin"}},
}

func TestAccessCommands(t *testing.T) {
	t.Parallel()
	strict := lay(t, t.TempDir(), map[string]string{"schema.cedarschema": schemaText, "all.cedar": permitAll + forbidSecrets})
	loose := lay(t, t.TempDir(), map[string]string{"schema.cedarschema": schemaText, "all.cedar": permitAll})
	h := newHome(t, accessPeople, settings{"policies": strict})
	d := h.serve()
	d.collection("root", "docs")
	for _, document := range []client.Document{note("a", "harbour", "user:ann"), note("b", "harbour", "user:bob"), note("c", "harbour")} {
		_, err := d.as("root").Write(t.Context(), "docs", document)
		require.NoError(t, err)
	}
	file := filepath.Join(t.TempDir(), "access.ndjson")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join([]string{
		`{"key":"a","readers":["group:hr","user:bob"]}`, `{"key":"b","readers":}`, ``, `{"key":"none","readers":[]}`,
		`{"key":"b","attributes":{"level":"secret"}}`, `{"key":"c","readers":["eve"]}`, `{"key":"c","readers":["user:ann"]}`,
	}, "\n")), 0o600))

	r := d.run("root", "access", "import", file, "-c", "docs", "--dry-run")
	require.Equal(t, 1, r.code, "lines would fail: %s", r)
	require.Equal(t, strings.TrimPrefix(`
  line 2 would fail: invalid character '}' looking for beginning of value
4 principals compared, 4 change: 2 documents gained, 5 lost
  user:bob: gains 1, loses 2
    + a
    - b
    - c
  group:hr: gains 1, loses 1
    + a
    - c
  public: gains 0, loses 1
    - c
  user:ann: gains 0, loses 1
    - a
`, "\n"), strings.SplitAfter(r.out, "    - a\n")[0], "%s", r)
	require.Contains(t, r.out, "  line 4, none, would fail: Not Found: the collection has no document with this key\n")
	require.Contains(t, r.out, "  line 6, c, would fail: ")
	require.Equal(t, []string{"a", "c"}, found(t, d.as("ann"), "docs", "harbour"), "nothing has changed")

	r = d.run("root", "access", "import", file, "-c", "docs")
	require.Equal(t, 1, r.code)
	require.Equal(t, "3 access_updated, 3 failed\n", r.out)
	refused := d.run("ann", "access", "import", file, "-c", "docs")
	require.Empty(t, refused.out, "no counts where nothing was done")
	require.Contains(t, refused.err, "Forbidden")
	for _, want := range []string{"failed line 2 b: ", "failed line 4 none: ", "failed line 6 c: ", "3 of 6 documents failed"} {
		require.Contains(t, r.err, want)
	}
	require.Equal(t, []string{"a", "c"}, found(t, d.as("ann"), "docs", "harbour"))
	require.Equal(t, []string{"a"}, found(t, d.as("bob"), "docs", "harbour"))

	explain := func(args ...string) string {
		r := d.run("root", append([]string{"access", "explain", "-c", "docs"}, args...)...)
		require.Zero(t, r.code, "%s", r)
		return r.out
	}
	require.Equal(t, "ann reads a\n  readers: the document names group:hr\n  policies: permitted by all.cedar:1:1\n", explain("ann", "a"))
	require.Equal(t, "ann does not read a\n  readers: the document names others, but neither ann nor one of its groups\n  policies: permitted by all.cedar:1:1\n", explain("ann", "a", "--group", "it"))
	require.Equal(t, "bob does not read b\n  readers: the document names user:bob\n  policies: forbidden by all.cedar:2:1\n", explain("bob", "b"))
	for name, want := range map[string]string{"bob": "your role does not allow this: it is write, and admin is needed", "ann": "your role does not allow this", "eve": "there is no such collection"} {
		r := d.run(name, "access", "explain", "ann", "a", "-c", "docs")
		require.Equal(t, 1, r.code)
		require.Contains(t, r.err, want)
	}
	require.Contains(t, d.run("root", "access", "explain", "ann", "missing", "-c", "docs").err, "no document with this key")

	people := filepath.Join(t.TempDir(), "people.ndjson")
	require.NoError(t, os.WriteFile(people, []byte(`{"subject":"bob"}`+"\n"+`{"subject":"ann"}`), 0o600))
	r = d.run("root", "access", "preview", loose, "-c", "docs", "--principals", people)
	require.Zero(t, r.code, "%s", r)
	require.Equal(t, "2 principals compared, 1 change: 1 document gained, 0 lost\n  bob: gains 1, loses 0\n    + b\n", r.out)
	empty := t.TempDir()
	require.Contains(t, d.run("root", "access", "preview", empty, "-c", "docs").err, empty+" has no policies (*.cedar): under it nobody reads anything")

	metrics, err := d.as("root").Metrics(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(metrics), "\nsluice_policy_faults_total 0\n")
	d.stop()
	text, err := os.ReadFile(filepath.Join(h.data(), "audit", "audit.ndjson"))
	require.NoError(t, err)
	for _, action := range []string{"policies.load", "collection.create", "document.write", "access.change", "access.preview", "access.explain", "search"} {
		require.Contains(t, string(text), `"stage":"end","action":"`+action+`"`)
	}
	require.NotContains(t, string(text), "harbour")
}

// answers is everything that a principal gets over HTTP, byte by byte.
func (s *served) answers(name string) string {
	s.t.Helper()
	var all strings.Builder
	ask := func(method, path, body string) {
		request, err := http.NewRequest(method, s.url+"/v1/collections/docs"+path, strings.NewReader(body))
		require.NoError(s.t, err)
		request.Header.Set("Authorization", "Bearer "+s.home.keys[name])
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		require.NoError(s.t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(s.t, err)
		for _, header := range []string{"Date", "X-Request-Id", "Server-Timing"} {
			response.Header.Del(header)
		}
		fmt.Fprintln(&all, response.StatusCode, response.Header, string(text))
	}
	for _, strategy := range []string{"sparse", "dense", "hybrid", "hybrid-late"} {
		for _, query := range []string{"harbour crane", "the tide at the northern quay", "words that nothing has"} {
			body, err := json.Marshal(client.SearchRequest{Query: query, Strategy: strategy, K: 10, Explain: true})
			require.NoError(s.t, err)
			ask("POST", "/search", string(body))
		}
	}
	ask("GET", "/documents?limit=3", "")
	ask("GET", "/documents/mine2", "")
	ask("GET", "/documents/foreign2", "")
	return all.String()
}

// What a principal may not see changes no byte of what it gets over HTTP.
func TestForeignDocumentsChangeNoByte(t *testing.T) {
	t.Parallel()
	const seed = 13
	random := rand.New(rand.NewPCG(seed, 0))
	words := strings.Fields("harbour crane tide ferry ledger quay north south buoy pilot anchor berth")
	text := func() string {
		var b bytes.Buffer
		for range 5 + random.IntN(20) {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		return b.String()
	}
	h := newHome(t, accessPeople)
	d := h.serve()
	d.collection("root", "docs")
	root := d.as("root")
	for i := range 12 {
		_, err := root.Write(t.Context(), "docs", note(fmt.Sprint("mine", i), text(), "group:hr"))
		require.NoError(t, err)
	}
	before := d.answers("ann")
	require.Contains(t, before, `"document":"mine`)
	for step := range 40 {
		key := fmt.Sprint("foreign", random.IntN(8))
		readers := [][]string{{}, {"user:bob"}, {"group:h"}, {"user:hr"}, {"group:HR"}}[random.IntN(5)]
		switch random.IntN(4) {
		case 0:
			_ = root.Delete(t.Context(), "docs", key) // it may not be there
		case 1:
			_, _ = root.SetAccess(t.Context(), "docs", key, client.AccessPatch{Readers: jsonOf(readers)})
		default:
			_, err := root.Write(t.Context(), "docs", note(key, text(), readers...))
			require.NoError(t, err)
		}
		if step%8 == 7 {
			require.Equal(t, before, d.answers("ann"), "seed %d, step %d", seed, step)
		}
	}
	d.stop()
	d = h.serve()
	require.Equal(t, before, d.answers("ann"), "after a restart")
	d.stop()
}
