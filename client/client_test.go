package client

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var ctx = context.Background()

func dial(t *testing.T, handler http.HandlerFunc, options ...Option) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	c, err := New(s.URL+"/", options...)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseIdle(); s.Close() })
	return c
}

func refuse(w http.ResponseWriter, status int, retryAfter string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", retryAfter)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{Type: "about:blank", Title: "No", Status: status, Detail: "later"})
}

func TestNewRefusesOtherURLs(t *testing.T) {
	for _, u := range []string{"", "127.0.0.1:8080", "/x", "ftp://x", "http://", "http://x/?y=z", "ftp://u:hunter2@x", "http://u:hunter2@x:port"} {
		_, err := New(u)
		require.ErrorContains(t, err, "such as http://127.0.0.1:8080", u)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestPathsAreEscaped(t *testing.T) {
	var got atomic.Value
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Method + " " + r.RequestURI)
		_, _ = io.WriteString(w, "{}")
	})
	_, err := c.Document(ctx, "c", "a/b ?#%2F;ü")
	require.NoError(t, err)
	require.Equal(t, "GET /v1/collections/c/documents/a%2Fb%20%3F%23%252F%3B%C3%BC", got.Load())
	_, err = c.List(ctx, "c", "a+b", 7)
	require.NoError(t, err)
	require.Equal(t, "GET /v1/collections/c/documents?after=a%2Bb&limit=7", got.Load())
}

func TestIdentityHeaders(t *testing.T) {
	var got atomic.Value
	echo := func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization") + "|" + r.Header.Get("X-Sluice-Principal"))
	}
	for want, option := range map[string]Option{
		"Bearer t|": WithToken("t"), "Bearer k|": WithAPIKey("k"), "|ann": WithDemoPrincipal("ann"),
	} {
		require.NoError(t, dial(t, echo, option).Health(ctx))
		require.Equal(t, want, got.Load())
	}
}

// 429 and 503 are tried again with the same body; other errors are not.
func TestRetries(t *testing.T) {
	for status, wantTries := range map[int]int32{429: 3, 503: 3, 500: 1, 404: 1, 504: 1} {
		var tries atomic.Int32
		c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if string(body) != `{"query":"q"}` {
				refuse(w, 400, "")
			} else if tries.Add(1) < 3 {
				refuse(w, status, "0")
			} else {
				_, _ = io.WriteString(w, `{"plan":"p"}`)
			}
		})
		r, err := c.Search(ctx, "c", SearchRequest{Query: "q"})
		require.Equal(t, wantTries, tries.Load(), status)
		if wantTries == 3 {
			require.NoError(t, err)
			require.Equal(t, "p", r.Plan)
		}
	}
}

func TestRetriesAreBounded(t *testing.T) {
	var tries atomic.Int32
	c := dial(t, func(w http.ResponseWriter, _ *http.Request) { tries.Add(1); refuse(w, 429, "0") }, WithRetries(0))
	var p *Problem
	require.ErrorAs(t, c.Health(ctx), &p)
	require.Equal(t, 429, p.Status)
	require.EqualValues(t, 1, tries.Load())

	// A wait ends with its context.
	c = dial(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "3600") })
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Health(short), context.DeadlineExceeded)
}

func TestRetryWaits(t *testing.T) {
	wait, again := retry(&Problem{Status: 429, RetryAfter: 3 * time.Second}, 0)
	require.True(t, again)
	require.Equal(t, 3*time.Second, wait)
	wait, _ = retry(&Problem{Status: 503, RetryAfter: time.Hour}, 0)
	require.Equal(t, maxWait, wait)
	wait, _ = retry(&Problem{Status: 503}, 2)
	require.Equal(t, 4*firstWait, wait)
	_, again = retry(io.EOF, 0)
	require.False(t, again)
	require.Zero(t, retryAfter(http.Header{"Retry-After": {"-1"}}))
	require.Zero(t, retryAfter(http.Header{"Retry-After": {"soon"}}))
}

func TestProblems(t *testing.T) {
	cases := map[string]struct {
		body string
		want Problem
	}{
		"problem": {`{"type":"t","title":"No","status":409,"detail":"d"}`, Problem{Type: "t", Title: "No", Status: 409, Detail: "d"}},
		"OpenAI":  {`{"error":{"message":"m","type":"x","param":null,"code":null}}`, Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: "m"}},
		"TEI":     {`{"error":"m","error_type":"Validation"}`, Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: "m"}},
		"Jina":    {`{"detail":"m"}`, Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: "m"}},
		"Cohere":  {`{"id":"i","message":"m"}`, Problem{Type: "about:blank", Title: "Conflict", Status: 409, Detail: "m"}},
		"proxy":   {`<html>`, Problem{Type: "about:blank", Title: "Conflict", Status: 409}},
		"nothing": {``, Problem{Type: "about:blank", Title: "Conflict", Status: 409}},
		"liar":    {`{"type":"t","title":"No","status":200}`, Problem{Type: "t", Title: "No", Status: 409}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := dial(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(409)
				_, _ = io.WriteString(w, c.body)
			})
			var p *Problem
			require.ErrorAs(t, client.Health(ctx), &p)
			require.Equal(t, c.want, *p)
		})
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, WithToken("t"))
	var p *Problem
	require.ErrorAs(t, c.Health(ctx), &p)
	require.Equal(t, 302, p.Status)
}

func TestIngestNoticesMissingResults(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"line":1,"status":"created"}`+"\n")
	})
	two := func(yield func(Document, error) bool) {
		_ = yield(Document{Key: "a"}, nil) && yield(Document{Key: "b"}, nil)
	}
	results := 0
	err := c.Ingest(ctx, "c", two, func(WriteResult) error { results++; return nil })
	require.ErrorIs(t, err, ErrIncomplete)
	require.Equal(t, 1, results)
}

func TestVector(t *testing.T) {
	values := []float32{1, -0.5, math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1}
	for _, form := range []bool{false, true} {
		text, err := json.Marshal(Vector{Values: values, Base64: form})
		require.NoError(t, err)
		var v Vector
		require.NoError(t, json.Unmarshal(text, &v))
		require.Equal(t, Vector{Values: values, Base64: form}, v)
	}
	for _, bad := range []string{`"AAA="`, `"***"`, `{}`, `["a"]`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(Vector)), bad)
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]Texts{`"a"`: {"a"}, `["a","b"]`: {"a", "b"}, `[]`: {}, `""`: {""}} {
		var got Texts
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, want, got)
	}
	for _, bad := range []string{`[1]`, `1`, `[["a"]]`, `["a",null]`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(Texts)), bad)
	}
}
