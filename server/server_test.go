package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/filter"
	"sluice/retrieve"
)

var ctx = context.Background()

func TestCollection(t *testing.T) {
	d := start(t)
	want := client.Collection{Name: "c", Analyzer: "english", TokenCodes: true, CodeBits: 1, Model: "tiny", Dimensions: 3, Created: time.Unix(1700000000, 0).UTC()}
	got, err := d.as("root").CreateCollection(ctx, "c", client.CollectionSettings{})
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = d.as("alice").Collection(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, want, got)

	require.Equal(t, 200, d.send("PUT", "/v1/collections/c", "{}", "Authorization", bearer("root")).status)
	require.Equal(t, 201, d.send("PUT", "/v1/collections/c2", "{}", "Authorization", bearer("root")).status)
	requireProblem(t, 409, d.send("PUT", "/v1/collections/c", `{"analyzer":"german"}`, "Authorization", bearer("root")))

	off := false
	got, err = d.as("root").CreateCollection(ctx, "bare", client.CollectionSettings{TokenCodes: &off})
	require.NoError(t, err)
	require.False(t, got.TokenCodes)
	require.Equal(t, 409, d.send("PUT", "/v1/collections/bare", "{}", "Authorization", bearer("root")).status)
}

func TestDocument(t *testing.T) {
	d := start(t)
	d.collection()
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := client.Document{
		Key: "a/b c%.md", Title: "T", Format: "markdown", Text: "# <Hi> & ü",
		Readers: &[]string{"group:eng", "user:eve"}, Regions: []string{"EU"}, ValidFrom: &from,
		Attributes: map[string]any{"level": 9007199254740993, "tags": []string{"b", "a", "b"}, "ok": true, "gone": nil},
	}
	result, err := d.as("writer").Write(ctx, "c", one)
	require.NoError(t, err)
	require.Equal(t, client.WriteResult{Key: one.Key, Status: "created", Version: 1, Chunks: 1, Truncated: 1}, result)
	require.Equal(t, filter.Access{
		Readers:       filter.Readers{List: []filter.Reader{"group:eng", "user:eve"}},
		Attributes:    filter.Attributes{"level": int64(9007199254740993), "tags": []string{"a", "b"}, "ok": true},
		Applicability: filter.Applicability{Regions: []string{"EU"}, ValidFrom: from},
	}, d.fake.documents["acme/c"][one.Key].Access)

	got, err := d.as("alice").Document(ctx, "c", one.Key)
	require.NoError(t, err)
	require.Equal(t, one.Text, got.Text)
	require.Nil(t, got.Readers, "readers are for writers")
	require.Equal(t, &from, got.ValidFrom)

	// The writer is no reader of this document.
	_, err = d.as("writer").Document(ctx, "c", one.Key)
	requireStatus(t, 404, err)
	result, err = d.as("writer").Write(ctx, "c", text("mine", "x", "public"))
	require.NoError(t, err)
	require.Equal(t, "created", result.Status)
	got, err = d.as("writer").Document(ctx, "c", "mine")
	require.NoError(t, err)
	require.Equal(t, &[]string{"public"}, got.Readers)

	require.NoError(t, d.as("writer").Delete(ctx, "c", "mine"))
	requireStatus(t, 404, d.as("writer").Delete(ctx, "c", "mine"))
}

func requireStatus(t *testing.T, status int, err error) {
	t.Helper()
	var p *client.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, status, p.Status, p.Detail)
}

func TestReaders(t *testing.T) {
	cases := map[string]struct {
		json string
		want filter.Readers
	}{
		"absent": {`{"key":"k","format":"text","text":"x"}`, filter.Readers{Undeclared: true}},
		"null":   {`{"key":"k","format":"text","text":"x","readers":null}`, filter.Readers{Undeclared: true}},
		"empty":  {`{"key":"k","format":"text","text":"x","readers":[]}`, filter.Readers{List: []filter.Reader{}}},
		"some":   {`{"key":"k","format":"text","text":"x","readers":["public","user:a:b"]}`, filter.Readers{List: []filter.Reader{"public", "user:a:b"}}},
	}
	d := start(t)
	d.collection()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Less(t, d.send("POST", "/v1/collections/c/documents", strings.Replace(c.json, `"k"`, `"`+name+`"`, 1), "Authorization", bearer("writer")).status, 300)
			require.Equal(t, c.want, d.fake.documents["acme/c"][name].Access.Readers)
		})
	}
}

// What a write does not name stays, null takes it away, a value replaces it:
// in a document by itself, in a line, and from the Go client.
func TestWritesKeepWhatTheyDoNotName(t *testing.T) {
	d := start(t)
	full := text("k", "x", "group:eng")
	full.Attributes, full.Regions = map[string]any{"a": "b"}, []string{"EU"}
	from := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	full.ValidFrom = &from
	d.collection(full)
	row := func() filter.Access { return d.fake.documents["acme/c"]["k"].Access }
	before := row()
	named := filter.Access{Readers: filter.Readers{List: []filter.Reader{"public"}}, Attributes: filter.Attributes{"n": int64(1)}}
	named.Applicability.Regions = []string{"US"}
	gone := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: filter.Attributes{}}
	cases := []struct {
		fields string
		want   filter.Access
	}{
		{``, before},
		{`,"readers":["public"],"attributes":{"n":1},"regions":["US"],"valid_from":null`, named},
		{`,"title":"another"`, named},
		{`,"readers":null,"attributes":null,"regions":null`, gone},
		{`,"readers":[]`, filter.Access{Readers: filter.Readers{List: []filter.Reader{}}, Attributes: filter.Attributes{}}},
	}
	for _, contentType := range []string{"application/json", ndjson} {
		_, err := d.as("writer").Write(ctx, "c", full)
		require.NoError(t, err)
		for _, c := range cases {
			body := `{"key":"k","format":"text","text":"x"` + c.fields + "}"
			a := d.send("POST", "/v1/collections/c/documents", body, "Authorization", bearer("writer"), "Content-Type", contentType)
			require.Equal(t, 200, a.status, a.body)
			require.NotContains(t, a.body, "failed")
			require.Equal(t, c.want, row(), "%s %s", contentType, c.fields)
		}
	}

	write := func(one client.Document) filter.Access {
		one.Key, one.Format, one.Text = "k", "text", "x"
		_, err := d.as("writer").Write(ctx, "c", one)
		require.NoError(t, err)
		return row()
	}
	require.Equal(t, before, write(full))
	require.Equal(t, before, write(client.Document{}))
	require.Equal(t, before.Keeping(filter.AttributesField, gone), write(client.Document{Attributes: map[string]any{}}))
	none := write(client.Document{Readers: new([]string), Regions: []string{}})
	require.Equal(t, filter.Readers{Undeclared: true}, none.Readers)
	require.Empty(t, none.Applicability.Regions)
}

func TestMissingAndForbiddenAnswerAlike(t *testing.T) {
	d := start(t)
	d.collection(text("secret", "x", "user:eve"))
	answers := map[string]answer{}
	for name, path := range map[string]string{
		"forbidden":     "/v1/collections/c/documents/secret",
		"missing":       "/v1/collections/c/documents/nothing",
		"no collection": "/v1/collections/none/documents/secret",
	} {
		a := d.send("GET", path, "", "Authorization", bearer("alice"))
		a.header.Del("X-Request-Id")
		a.header.Del("Date")
		answers[name] = a
	}
	a := d.send("GET", "/v1/collections/c/documents/secret", "", "Authorization", bearer("other"))
	a.header.Del("X-Request-Id")
	a.header.Del("Date")
	answers["other tenant"] = a
	requireProblem(t, 404, a)
	for name, b := range answers {
		require.Empty(t, cmp.Diff(a, b, cmp.AllowUnexported(answer{})), name)
	}
}

func TestPatchAccess(t *testing.T) {
	d := start(t)
	one := text("k", "x", "group:eng")
	one.Attributes = map[string]any{"a": "b"}
	one.Regions = []string{"EU"}
	d.collection(one)
	row := func() filter.Access { return d.fake.documents["acme/c"]["k"].Access }
	patch := func(text string) answer {
		return d.send("PATCH", "/v1/collections/c/documents/k/access", text, "Authorization", bearer("writer"))
	}
	before := row()
	require.Equal(t, 200, patch(`{}`).status)
	require.Equal(t, before, row())

	a := patch(`{"readers":null,"valid_until":"2026-05-06T07:08:09+02:00"}`)
	require.JSONEq(t, `{"key":"k","status":"access_updated","version":1,"chunks":1}`, a.body)
	want := before
	want.Readers = filter.Readers{Undeclared: true}
	want.Applicability.ValidUntil = time.Date(2026, 5, 6, 5, 8, 9, 0, time.UTC)
	require.Equal(t, want, row())

	require.Equal(t, 200, patch(`{"readers":[],"attributes":{"n":1},"regions":null,"valid_until":null}`).status)
	require.Equal(t, filter.Access{Readers: filter.Readers{List: []filter.Reader{}}, Attributes: filter.Attributes{"n": int64(1)}}, row())

	bad := map[string]string{
		`{"readers":["eve"]}`:            "readers: entry 1",
		`{"readers":"eve"}`:              "readers:",
		`{"attributes":{"x":1.5}}`:       `attribute "x"`,
		`{"attributes":{"x":{"y":"z"}}}`: `attribute "x"`,
		`{"valid_from":"yesterday"}`:     "valid_from:",
		`{"owner":"me"}`:                 `unknown field "owner"`,
		`{"valid_from":"2026-05-06T00:00:00Z","valid_until":"2026-05-06T00:00:00Z"}`: "valid_until: not after",
	}
	before = row()
	for text, want := range bad {
		require.Contains(t, requireProblem(t, 400, patch(text)), want)
		require.Equal(t, before, row())
	}

	// What is wrong only together with the present row.
	require.Equal(t, 200, patch(`{"valid_from":"2026-05-06T00:00:00Z"}`).status)
	require.Contains(t, requireProblem(t, 400, patch(`{"valid_until":"2026-01-01T00:00:00Z"}`)), "valid_until: not after")
	require.True(t, row().Applicability.ValidUntil.IsZero())

	_, err := d.as("writer").SetAccess(ctx, "c", "k", client.AccessPatch{Readers: json.RawMessage(`["public"]`)})
	require.NoError(t, err)
	require.Equal(t, []filter.Reader{"public"}, row().Readers.List)
	_, err = d.as("writer").SetAccess(ctx, "c", "nothing", client.AccessPatch{})
	requireStatus(t, 404, err)
}

func TestListing(t *testing.T) {
	d := start(t)
	d.collection(text("a", "x"), text("b", "x", "user:bob"), text("ü/c", "x", "group:eng"), text("d", "x", "public"))
	var found []string
	for after := ""; ; {
		page, err := d.as("alice").List(ctx, "c", after, 1)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Documents), 1)
		for _, one := range page.Documents {
			require.Empty(t, one.Text)
			found = append(found, one.Key)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	require.Equal(t, []string{"a", "d", "ü/c"}, found)

	found = nil
	for one, err := range d.as("bob").Documents(ctx, "c") {
		require.NoError(t, err)
		found = append(found, one.Key)
	}
	require.Equal(t, []string{"a", "b", "d"}, found)

	for _, query := range []string{"limit=0", "limit=1001", "limit=many", "after=***", "page=2"} {
		requireProblem(t, 400, d.send("GET", "/v1/collections/c/documents?"+query, "", "Authorization", bearer("alice")))
	}
}

func TestSearch(t *testing.T) {
	d := start(t)
	d.collection(text("a", "x"))
	response, err := d.as("alice").Search(ctx, "c", client.SearchRequest{Query: "q", K: 3, Strategy: "dense", Fusion: "rrf", Explain: true, Ranking: &client.Ranking{DenseDepth: 80, LexicalWeight: 0.25}})
	require.NoError(t, err)
	require.Equal(t, client.SearchResponse{
		Results: []client.SearchResult{{Document: "a", Version: 1, End: 4, Headings: []string{}, Text: "text", Score: 1,
			Explain: &client.Explain{Legs: map[string]client.LegExplain{"dense": {Rank: 1, Score: .5}}}}},
		Strategy: "dense", Plan: "abc", Counts: client.Counts{Visible: 1}, Degraded: []string{},
		Ranking: &client.Ranking{DenseDepth: 80, LexicalWeight: 0.25}, Complexity: 0.4,
	}, response)
	asked := d.fake.searched[0]
	require.Equal(t, "acme", asked.Principal.Tenant)
	require.Equal(t, 3, asked.K)
	require.Equal(t, "rrf", asked.Fusion)
	require.Equal(t, retrieve.Ranking{DenseDepth: 80, LexicalWeight: 0.25}, asked.Ranking)
	require.Equal(t, "EU", asked.Scope.Region)
	require.False(t, asked.Scope.AsOf.IsZero())

	a := d.send("POST", "/v1/collections/c/search", `{"query":"q","scope":{"any_region":true,"as_of":"2026-05-06T07:08:09Z"}}`, "Authorization", bearer("alice"))
	require.Equal(t, 200, a.status)
	require.NotContains(t, a.body, "explain")
	require.NotContains(t, a.body, "ranking")
	require.NotContains(t, a.body, "complexity")
	require.Regexp(t, `^resolve;dur=1\.5, dense;dur=2, total;dur=[0-9.]+$`, a.header.Get("Server-Timing"))
	asked = d.fake.searched[1]
	require.Equal(t, filter.Scope{Region: "EU", AnyRegion: true, AsOf: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)}, asked.Scope)
	require.Equal(t, 10, asked.K)
}

// Who proves an identity and gets an answer is told how long it took.
func TestServerTiming(t *testing.T) {
	d := start(t)
	d.collection(text("a", "x"))
	timing := func(method, path string, header ...string) string {
		return d.send(method, path, "", header...).header.Get("Server-Timing")
	}
	for _, path := range []string{"/v1/identity", "/v1/collections", "/v1/collections/c/documents"} {
		require.Regexp(t, `total;dur=[0-9.]+$`, timing("GET", path, "Authorization", bearer("alice")), path)
	}
	require.Empty(t, timing("GET", "/healthz"), "a probe")
	require.Empty(t, timing("GET", "/openapi.json"), "anybody's")
	require.Empty(t, timing("GET", "/v1/identity"), "a failure")
	require.Empty(t, timing("GET", "/v1/collections/none", "Authorization", bearer("alice")), "a failure")
}

func TestRequestID(t *testing.T) {
	d := start(t)
	require.Equal(t, "abc-1.2", d.send("GET", "/healthz", "", "X-Request-Id", "abc-1.2").header.Get("X-Request-Id"))
	forged := d.send("GET", "/healthz", "", "X-Request-Id", "abc level=ERROR").header.Get("X-Request-Id")
	require.Regexp(t, requestIDForm, forged)
	require.NotContains(t, forged, "abc")
	require.NotEqual(t, forged, d.send("GET", "/nothing", "").header.Get("X-Request-Id"))
}

func TestLogHoldsNoSecrets(t *testing.T) {
	d := start(t)
	d.collection(text("the-key", "the-text", "group:eng"))
	_, err := d.as("alice").Search(ctx, "c", client.SearchRequest{Query: "the-query"})
	require.NoError(t, err)
	_, err = d.as("alice").Document(ctx, "c", "the-key")
	require.NoError(t, err)
	d.send("GET", "/v1/collections/c", "", "Authorization", "Bearer the-token")
	d.send("GET", "/v1/collections/the-path", "", "Authorization", bearer("alice"))
	require.NoError(t, d.stop())
	log := d.log.String()
	require.Contains(t, log, `route=/v1/collections/{collection}/search status=200`)
	require.Contains(t, log, `tenant=acme subject=alice`)
	require.Contains(t, log, "unknown API key")
	for _, secret := range []string{"the-key", "the-text", "the-query", "the-token", "the-path", keys["alice"].key} {
		require.NotContains(t, log, secret)
	}
}

func TestHealth(t *testing.T) {
	d := start(t)
	require.JSONEq(t, `{"status":"ok"}`, d.send("GET", "/healthz", "").body)
	require.Equal(t, 200, d.send("GET", "/readyz", "").status)
	require.Equal(t, 200, d.send("HEAD", "/readyz", "").status)
	d.fake.notReady = context.DeadlineExceeded
	a := d.send("GET", "/readyz", "")
	require.Equal(t, "not ready", requireProblem(t, 503, a))
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Equal(t, 200, d.send("GET", "/healthz", "").status)
}
