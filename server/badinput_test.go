package server

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"context"

	"sluice/chunk"
	"sluice/gpu"
	"sluice/retrieve"
	"sluice/store"
)

func TestBadBodies(t *testing.T) {
	d := start(t)
	d.collection()
	const documents, search = "/v1/collections/c/documents", "/v1/collections/c/search"
	cases := map[string]struct {
		path, body string
		status     int
		detail     string
	}{
		"blank":               {documents, "  \n", 400, "the body is empty"},
		"truncated":           {documents, `{"key":"k","text":"x`, 400, "malformed JSON"},
		"trailing":            {documents, `{"key":"k","format":"text","text":"x"} {}`, 400, "malformed JSON"},
		"not UTF-8":           {documents, "{\"key\":\"k\",\"format\":\"text\",\"text\":\"\xff\"}", 400, "malformed JSON"},
		"half a surrogate":    {documents, `{"key":"k","format":"text","text":"\ud800"}`, 400, "malformed JSON"},
		"unknown field":       {documents, `{"key":"k","format":"text","text":"x","reader":[]}`, 400, `unknown field "reader"`},
		"another case":        {documents, `{"Key":"k","format":"text","text":"x"}`, 400, `unknown field "Key"`},
		"unknown inner":       {search, `{"query":"q","scope":{"regoin":"EU"}}`, 400, `unknown field "regoin" at /scope`},
		"duplicate field":     {documents, `{"key":"k","readers":[],"format":"text","text":"x","readers":null}`, 400, `field "readers" is there twice`},
		"a list":              {documents, `[]`, 400, "does not fit"},
		"null":                {documents, `null`, 400, "the body is null"},
		"wrong type":          {search, `{"query":"q","k":"ten"}`, 400, "at /k"},
		"deep":                {documents, `{"key":"k","attributes":{"a":` + strings.Repeat("[", 20000), 400, "malformed JSON"},
		"nested attribute":    {documents, `{"key":"k","format":"text","text":"x","attributes":{"a":[["b"]]}}`, 400, `attribute "a": item 0 is a nested list`},
		"huge number":         {documents, `{"key":"k","format":"text","text":"x","attributes":{"a":9223372036854775808}}`, 400, `attribute "a": 9.2`},
		"large":               {documents, `{"key":"k","format":"text","text":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "limits.body_bytes"},
		"no key":              {documents, `{"format":"text","text":"x"}`, 400, "key: a document needs one"},
		"key with NUL":        {documents, `{"key":"a\u0000b","format":"text","text":"x"}`, 400, "key: not UTF-8 without control"},
		"key too long":        {documents, `{"key":"` + strings.Repeat("k", 5000) + `","format":"text","text":"x"}`, 400, "key: longer than 1024 bytes"},
		"title too long":      {documents, `{"key":"k","title":"` + strings.Repeat("t", 1025) + `","format":"text","text":"x"}`, 400, "title: longer than 1024 bytes"},
		"key is ..":           {documents, `{"key":"..","format":"text","text":"x"}`, 400, "cannot stand in a path"},
		"format":              {documents, `{"key":"k","format":"docx","text":"x"}`, 400, "use markdown, html or text"},
		"reader":              {documents, `{"key":"k","format":"text","text":"x","readers":["public","eve"]}`, 400, "readers: entry 2"},
		"reader without name": {documents, `{"key":"k","format":"text","text":"x","readers":["user:"]}`, 400, "readers: entry 1"},
		"validity":            {documents, `{"key":"k","format":"text","text":"x","valid_from":"2026-05-06T00:00:00Z","valid_until":"2026-05-05T00:00:00Z"}`, 400, "valid_until"},
		"valid until zero":    {documents, `{"key":"k","format":"text","text":"x","valid_until":"0001-01-01T00:00:00Z"}`, 400, "valid_until: the first moment"},
		"zero in a zone":      {documents, `{"key":"k","format":"text","text":"x","valid_from":"0001-01-01T01:00:00+01:00"}`, 400, "valid_from: the first moment"},
		"as of zero":          {search, `{"query":"q","scope":{"as_of":"0001-01-01T00:00:00Z"}}`, 400, "as_of: the first moment"},
		"empty query":         {search, `{"query":""}`, 400, "query: must not be empty"},
		"long query":          {search, `{"query":"` + strings.Repeat("q", 8193) + `"}`, 400, "query: longer"},
		"k too large":         {search, `{"query":"q","k":101}`, 400, "k: "},
		"negative k":          {search, `{"query":"q","k":-1}`, 400, "k: "},
		"two scopes":          {search, `{"query":"q","scope":{"region":"EU","any_region":true}}`, 400, "exclude each other"},
		"unknown collection":  {"/v1/collections/none/search", `{"query":"q"}`, 404, "no such collection"},
		"ingest into none":    {"/v1/collections/none/documents", `{"key":"k","format":"text","text":"x"}`, 404, "no such collection"},
		"collection name":     {"/v1/collections/.c/search", `{"query":"q"}`, 400, "a collection's name"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			detail := requireProblem(t, c.status, d.send("POST", c.path, c.body, "Authorization", bearer("writer")))
			require.Contains(t, detail, c.detail)
		})
	}
	require.Empty(t, d.fake.documents["acme/c"])
}

func TestContentType(t *testing.T) {
	d := start(t)
	d.collection()
	const path, body = "/v1/collections/c/search", `{"query":"q"}`
	for _, contentType := range []string{"text/plain", "application/jsonx", "x", "multipart/form-data; boundary=x"} {
		requireProblem(t, 415, d.send("POST", path, body, "Authorization", bearer("alice"), "Content-Type", contentType))
	}
	requireProblem(t, 415, d.send("POST", path, body, "Authorization", bearer("alice"), "Content-Encoding", "gzip"))
	require.Equal(t, 200, d.send("POST", path, body, "Authorization", bearer("alice"), "Content-Type", "application/json; charset=utf-8").status)
	require.Contains(t, requireProblem(t, 415, d.raw("POST "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+bearer("alice")+"\r\nContent-Length: 0\r\n\r\n")), "Content-Type")
}

func TestEmptyAndBrokenFraming(t *testing.T) {
	d := start(t)
	d.collection()
	head := "POST /v1/collections/c/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: " + bearer("alice") + "\r\n"
	cases := map[string]struct {
		request string
		status  int
	}{
		"empty":              {head + "Content-Length: 0\r\n\r\n", 400},
		"broken chunk":       {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", 400},
		"two lengths":        {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400},
		"length and chunks":  {head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"negative length":    {head + "Content-Length: -2\r\n\r\n{}", 400},
		"space before colon": {head + "Content-Length : 2\r\n\r\n{}", 400},
		"folded header":      {head + "X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}", 400},
		"not HTTP":           {"hello\r\n\r\n", 400},
		"declared too large": {head + "Content-Length: 99999999999\r\n\r\n{}", 413},
		"chunks too large":   {head + "Transfer-Encoding: chunked\r\n\r\n20000\r\n" + strings.Repeat("x", 0x20000) + "\r\n0\r\n\r\n", 413},
		"header too large":   {head + "X-A: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431},
		"two identities":     {head + "Authorization: Bearer x\r\nContent-Length: 2\r\n\r\n{}", 400},
		"absolute target":    {"GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"asterisk":           {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { requireProblem(t, c.status, d.raw(c.request)) })
	}
	require.Empty(t, d.fake.searched)
}

// A client that sends a far too large body before it reads sees the answer, not a reset.
func TestTooLargeBodyIsAnswered(t *testing.T) {
	d := start(t)
	d.collection()
	const size = 16 << 20
	requireProblem(t, 413, d.raw(fmt.Sprintf("POST /v1/collections/c/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n",
		bearer("alice"), size)+strings.Repeat("x", size)))
}

// A body that ends before its Content-Length is not a shorter body.
func TestTruncatedBody(t *testing.T) {
	d := start(t)
	d.collection()
	full := `{"key":"k","format":"text","text":"` + strings.Repeat("x", 20<<10) + `"}`
	connection := d.dial()
	_, err := fmt.Fprintf(connection, "POST /v1/collections/c/documents HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s",
		bearer("writer"), len(full)+10, full)
	require.NoError(t, err)
	requireProblem(t, 400, d.halfClosed(connection))
	require.Empty(t, d.fake.documents["acme/c"])
}

func TestPaths(t *testing.T) {
	d := start(t)
	d.collection(text("a/b", "x"))
	cases := map[string]int{
		"/v1/collections/c/documents/a%2Fb":                        200,
		"/v1/collections/c/documents/a%2fb":                        200,
		"/v1/collections/c/documents/a/b":                          404,
		"/v1/collections/c/documents/a%252Fb":                      404, // decoded once: the key "a%2Fb"
		"/v1/collections/c%2Fdocuments/a%2Fb":                      404,
		"/v1/collections/c%2fdocuments%2fa":                        400,
		"/v1/collections/c/../c":                                   400,
		"/v1/collections/x/..%2fc":                                 404,
		"/v1/collections/x/%2e%2e/c":                               400,
		"/v1/collections/c/documents/..":                           400,
		"/v1/collections/c/documents/%2e":                          400,
		"/v1//collections/c":                                       404,
		"//v1/collections/c":                                       404,
		"/v1/collections/c/":                                       404,
		"/v1/collections//documents":                               400,
		"/v1/collections/c/documents/":                             400,
		"/healthz/..%2fv1":                                         404,
		"/%68ealthz":                                               404,
		"/HEALTHZ":                                                 404,
		"/v1/collections/c;x=1":                                    400,
		"/v1/collections/c\\d":                                     400,
		"/v1/collections/c/documents/a%00b":                        400,
		"/v1/collections/c/documents/a%0Ab":                        400,
		"/v1/collections/c/documents/%ff":                          400,
		"/v1/collections/c/documents/%zz":                          400,
		"/v1/collections/c/documents/" + strings.Repeat("k", 1024): 404,
		"/v1/collections/c/documents/" + strings.Repeat("k", 1025): 400,
		"/v1/collections/c/documents/" + strings.Repeat("k", 5000): 400,
		"/v1/collections/" + strings.Repeat("a/", 100):             404,
		"/search": 404,
	}
	for path, status := range cases {
		t.Run(path[:min(len(path), 60)], func(t *testing.T) {
			a := d.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: " + bearer("alice") + "\r\n\r\n")
			require.Equal(t, status, a.status, a.body)
			if status != 200 {
				requireProblem(t, status, a)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	d := start(t)
	a := d.send("POST", "/v1/collections/c", "{}", "Authorization", bearer("root"))
	requireProblem(t, 405, a)
	require.Equal(t, "PUT, GET, HEAD", a.header.Get("Allow"))
	a = d.raw("BREW /v1/collections/c/documents/k HTTP/1.1\r\nHost: x\r\n\r\n")
	requireProblem(t, 405, a)
	require.Equal(t, "GET, HEAD, DELETE", a.header.Get("Allow"))
}

// Errors of the backend become what Backend's documentation says.
func TestBackendErrors(t *testing.T) {
	d := start(t)
	d.collection()
	cases := []struct {
		err    error
		status int
	}{
		{store.ErrTooManyRows, 409}, {gpu.ErrOverloaded, 429}, {retrieve.ErrStopped, 503}, {gpu.ErrDevice, 503}, {gpu.ErrClosed, 503},
		{context.DeadlineExceeded, 504}, {fmt.Errorf("%w: %w", chunk.ErrPlanner, context.DeadlineExceeded), 503},
		{fmt.Errorf("%w: %w", store.ErrInvalid, chunk.ErrPlanner), 503},
		{syscall.ENOSPC, 507}, {store.ErrLocked, 500}, {fmt.Errorf("row 17 of tenant rival"), 500},
	}
	for _, c := range cases {
		d.fake.onSearch = func(context.Context, retrieve.Request) error { return fmt.Errorf("internals: %w", c.err) }
		a := d.send("POST", "/v1/collections/c/search", `{"query":"q"}`, "Authorization", bearer("alice"))
		requireProblem(t, c.status, a)
		require.Equal(t, c.status == 429 || c.status == 503, a.header.Get("Retry-After") != "")
		if c.err != store.ErrInvalid {
			require.NotContains(t, a.body, "internals")
			require.NotContains(t, a.body, "rival")
		}
	}
	require.Contains(t, d.log.String(), "row 17 of tenant rival", "the log has it")
}
