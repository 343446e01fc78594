package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/filter"
	"sluice/server/audit"
)

// impersonating is a client of root that impersonates somebody.
func (d *daemon) impersonating(p client.Principal) *client.Client {
	d.t.Helper()
	c, err := client.New(d.url, client.WithAPIKey(keys["root"].key), client.WithRetries(0), client.WithImpersonation(p))
	require.NoError(d.t, err)
	d.t.Cleanup(c.CloseIdle)
	return c
}

// An administrator sees exactly what the other principal would, their own right
// to read set aside, and the log says who impersonated whom.
func TestImpersonation(t *testing.T) {
	d, log, dir := audited(t, func(*audit.Options) {})
	d.collection(text("hers", "x", "user:alice"), text("eng", "x", "group:eng"), text("roots", "x", "user:root"), text("ünï", "x", "user:ünï"))
	for _, c := range []struct {
		who  client.Principal
		sees []string
	}{
		{client.Principal{Subject: "alice"}, []string{"eng", "hers"}}, // groups as configured
		{client.Principal{Subject: "alice", Groups: []string{"sales"}}, []string{"hers"}},
		{client.Principal{Subject: "new", Groups: []string{"eng"}}, []string{"eng"}},
		{client.Principal{Subject: "ünï"}, []string{"ünï"}},
		{client.Principal{Subject: "other"}, nil}, // of another tenant: here nobody
	} {
		as := d.impersonating(c.who)
		page, err := as.List(ctx, "c", "", 10)
		require.NoError(t, err)
		var keys []string
		for _, one := range page.Documents {
			keys = append(keys, one.Key)
		}
		require.Equal(t, c.sees, keys, "%v", c.who)
		for _, key := range []string{"hers", "eng", "roots"} {
			_, err := as.Document(ctx, "c", key)
			require.Equal(t, !contains(keys, []byte(key)), err != nil, "%v %s", c.who, key)
		}
		_, err = as.Search(ctx, "c", client.SearchRequest{Query: "secret"})
		require.NoError(t, err)
		searched := d.fake.searched[len(d.fake.searched)-1].Principal
		require.Equal(t, []string{"acme", c.who.Subject}, []string{searched.Tenant, searched.Subject})
	}
	log.Close()

	content, err := os.ReadFile(filepath.Join(dir, "audit.ndjson"))
	require.NoError(t, err)
	require.NotContains(t, string(content), "secret")
	alice := filter.Principal{Tenant: "acme", Subject: "alice", Groups: []string{"eng"}, Attributes: filter.Attributes{"region": "EU"}}
	root := filter.Principal{Tenant: "acme", Subject: "root", Attributes: filter.Attributes{"region": "EU"}}
	looks, searches := 0, 0
	for line := range strings.Lines(string(content)) {
		var r audit.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		switch {
		case r.Action == audit.Impersonate:
			looks++
			require.Equal(t, []string{"acme", "root", "c"}, []string{r.Tenant, r.Subject, r.Collection})
			require.NotEmpty(t, r.As)
			require.NotEqual(t, r.Principal, r.AsPrincipal)
			require.Len(t, r.AsPrincipal, 64)
		case r.Action == audit.Search:
			require.Equal(t, audit.Digest(root), r.Principal, "who asked")
			if r.AsPrincipal == audit.Digest(alice) {
				searches++
			}
		}
	}
	require.Equal(t, 2*5*5, looks, "each look, begun and ended")
	require.Equal(t, 1, searches, "a search names who was impersonated, too")
}

// Nobody else may, nothing is changed that way, and nothing is unrecorded.
func TestImpersonationIsRefused(t *testing.T) {
	d, log, _ := audited(t, func(o *audit.Options) { o.Administration = audit.Continue })
	d.collection(text("k", "x"))
	const search, alice = "/v1/collections/c/search", `{"subject":"alice"}`
	ask := func(who, method, path, body, as string) answer {
		return d.send(method, path, body, "Authorization", bearer(who), "X-Sluice-Impersonate", as)
	}
	require.Equal(t, 200, ask("root", "POST", search, `{"query":"x"}`, alice).status)
	before := len(d.fake.searched)
	for _, who := range []string{"alice", "writer"} {
		require.Contains(t, requireProblem(t, 403, ask(who, "POST", search, `{"query":"x"}`, alice)), "X-Sluice-Impersonate")
		require.Equal(t, 403, ask(who, "POST", search, `{"query":"x"}`, `{"subject":"`+who+`"}`).status)
	}
	for _, bad := range []string{"", "alice", `{}`, `{"subject":"a","tenant":"rival"}`, `{"subject":"a","groups":[""]}`, `{"subject":"a"`} {
		requireProblem(t, 400, ask("root", "POST", search, `{"query":"x"}`, bad))
	}
	for _, r := range routes() {
		if !r.open && !r.impersonate {
			path := strings.NewReplacer("{collection}", "c", "{key}", "k", "{action}", "pause").Replace(r.pattern)
			require.Equal(t, r.dialect.status(failf(400, "")), ask("root", r.method, path, `{}`, alice).status, "%s %s", r.method, path)
		}
	}
	for _, value := range []string{alice, ""} {
		former := d.send("POST", search, `{"query":"x"}`, "Authorization", bearer("alice"), "X-Sluice-As", value)
		require.Contains(t, requireProblem(t, 400, former), "X-Sluice-Impersonate", "its name has changed")
	}
	require.Len(t, d.fake.documents["acme/c"], 1)
	twice := d.raw("POST " + search + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 13\r\nAuthorization: " + bearer("root") +
		"\r\nX-Sluice-Impersonate: " + alice + "\r\nX-Sluice-Impersonate: " + alice + "\r\n\r\n" + `{"query":"x"}`)
	requireProblem(t, 400, twice)

	log.Close() // from now on nothing can be recorded
	require.Contains(t, requireProblem(t, 503, ask("root", "POST", search, `{"query":"x"}`, alice)), "audit log")
	require.Len(t, d.fake.searched, before)
	without := start(t)
	without.collection()
	a := without.send("POST", search, `{"query":"x"}`, "Authorization", bearer("root"), "X-Sluice-Impersonate", alice)
	require.Contains(t, requireProblem(t, 403, a), "audit.directory")
}
