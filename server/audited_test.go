package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/ingest"
	"sluice/server/audit"
)

// audited is a daemon with an audit log, and its directory.
func audited(t *testing.T, change func(*audit.Options)) (*daemon, *audit.Log, string) {
	t.Helper()
	o := audit.Options{
		Directory: t.TempDir(), FileBytes: 1 << 20, Administration: audit.Refuse, Searches: audit.Continue,
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	}
	change(&o)
	log, err := audit.Open(o)
	require.NoError(t, err)
	return start(t, func(s *setup) { s.audit = log }), log, o.Directory
}

// Every administrative action has its records, a search has one, and none of
// them holds what was asked or written.
func TestAuditedActions(t *testing.T) {
	d, log, dir := audited(t, func(*audit.Options) {})
	d.collection()
	d.fake.onWrite = func(_ context.Context, one ingest.Document) error {
		if one.Key == "fails" {
			return errors.New("the-reason")
		}
		return nil
	}
	writer := d.as("writer")
	_, err := writer.Write(ctx, "c", text("k", "secret text", "user:alice"))
	require.NoError(t, err)
	d.bulk(line("l", "secret text") + "\n" + line("fails", "secret text") + "\n{}\n")
	_, err = writer.SetAccess(ctx, "c", "k", client.AccessPatch{Readers: json.RawMessage(`["public"]`)})
	require.NoError(t, err)
	_, err = d.as("alice").Search(ctx, "c", client.SearchRequest{Query: "secret question"})
	require.NoError(t, err)
	require.NoError(t, writer.Delete(ctx, "c", "k"))
	require.Equal(t, 404, d.send("DELETE", "/v1/collections/c/documents/none", "", "Authorization", bearer("writer")).status)
	require.Equal(t, 403, d.send("DELETE", "/v1/collections/c/documents/l", "", "Authorization", bearer("alice")).status)
	const bad = `{"policies":{"schema":"","files":{"a.cedar":"secret ("}}}`
	require.Equal(t, 400, d.send("POST", access+"preview", bad, "Authorization", bearer("root")).status)
	log.Close()

	content, err := os.ReadFile(filepath.Join(dir, "audit.ndjson"))
	require.NoError(t, err)
	require.NotContains(t, string(content), "secret")
	require.NotContains(t, string(content), "the-reason")
	var got []string
	principals := map[string]string{}
	for text := range strings.Lines(string(content)) {
		var r audit.Record
		require.NoError(t, json.Unmarshal([]byte(text), &r))
		require.NotEmpty(t, r.Request)
		require.Len(t, r.Principal, 64)
		got = append(got, strings.Join([]string{r.Stage, r.Action, r.Tenant, r.Subject, r.Collection, r.Document}, " ")+" "+jsonOf(t, []any{r.Status, r.Epoch, r.Plan, r.Counts}))
		principals[r.Action+r.Stage] = r.Principal
	}
	require.Equal(t, principals[audit.DeleteDocument+audit.End], principals[audit.ChangeAccess+audit.Begin])
	require.NotEqual(t, principals[audit.DeleteDocument+audit.End], principals[audit.Search+audit.End])
	require.ElementsMatch(t, []string{ // lines of a bulk body are written side by side
		`begin collection.create acme root c  [0,0,"",null]`, `end collection.create acme root c  [200,7,"",null]`,
		`begin document.write acme writer c k [0,0,"",null]`, `end document.write acme writer c k [200,7,"",null]`,
		`begin document.write acme writer c l [0,0,"",null]`, `end document.write acme writer c l [200,7,"",null]`,
		`begin document.write acme writer c fails [0,0,"",null]`, `end document.write acme writer c fails [500,0,"",null]`,
		`begin access.change acme writer c k [0,0,"",null]`, `end access.change acme writer c k [200,7,"",null]`,
		`end search   c  [200,7,"abc",{"visible":2,"out_of_scope":0,"results":2}]`,
		`begin document.delete acme writer c k [0,0,"",null]`, `end document.delete acme writer c k [200,7,"",null]`,
		`begin access.preview acme root c  [0,0,"",null]`, `end access.preview acme root c  [400,0,"",null]`,
		`begin document.delete acme writer c none [0,0,"",null]`, `end document.delete acme writer c none [404,0,"",null]`,
	}, got)
}

// Without its record an action is not done, unless the settings say that it is.
func TestActionsWithoutAuditAreRefused(t *testing.T) {
	for _, mode := range []string{audit.Refuse, audit.Continue} {
		d, log, _ := audited(t, func(o *audit.Options) { o.Administration, o.Searches = mode, mode })
		d.collection(text("k", "x"))
		log.Close() // from now on nothing can be written
		write := d.send("POST", "/v1/collections/c/documents", line("new", "x"), "Authorization", bearer("writer"))
		patch := d.send("PATCH", "/v1/collections/c/documents/k/access", `{"readers":[]}`, "Authorization", bearer("writer"))
		search := d.send("POST", "/v1/collections/c/search", `{"query":"x"}`, "Authorization", bearer("alice"))
		_, results := d.bulk(line("line", "x"))
		if mode == audit.Continue {
			require.Less(t, write.status, 300)
			require.Equal(t, []int{200, 200}, []int{patch.status, search.status})
			require.Equal(t, "created", results[0].Status)
			continue
		}
		for _, a := range []answer{write, patch, search} {
			require.Contains(t, requireProblem(t, 503, a), "audit log")
		}
		require.Equal(t, 503, results[0].Error.Status)
		require.Len(t, d.fake.documents["acme/c"], 1, "nothing was written")
		require.True(t, d.fake.documents["acme/c"]["k"].Access.Readers.Undeclared, "nothing was changed")
		require.Equal(t, 200, d.send("GET", "/v1/collections/c/documents/k", "", "Authorization", bearer("alice")).status)
	}
}
