package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/server/traces/tracestest"
)

// canaries are words that nobody has said before, and that no log may repeat.
type canaries map[string]string

// word returns the canary of a kind of text.
func (c canaries) word(kind string) string {
	if c[kind] == "" {
		c[kind] = "zq" + strings.ToLower(rand.Text())
	}
	return c[kind]
}

// call is one request of a day.
type call struct {
	method, path, body, authorization string
	contentType                       string
}

// day is what clients send in a day, right and wrong.
func (c canaries) day(key string) []call {
	const docs = "/v1/collections/docs"
	bearer := "Bearer " + key
	title := func(text string) string { return `{"key": "k", "title": "` + c.word("title") + `", ` + text + `}` }
	post := func(path, body string) call { return call{"POST", path, body, bearer, "application/json"} }
	pages := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4 " + c.word("pdf")))
	calls := []call{
		{"PUT", docs, "{}", bearer, "application/json"},
		{"PUT", docs, `{"` + c.word("setting") + `": 1}`, bearer, "application/json"},
		{"PUT", "/v1/collections/own", `{"own_vectors": {"dimensions": 2}}`, bearer, "application/json"},
		post("/v1/collections/own/documents", `{"key": "p", "passages": [{"text": "`+c.word("passage")+`", "headings": ["`+c.word("heading")+`"], "vector": [1, 0]}]}`),
		post(docs+"/documents", title(`"format": "markdown", "text": "# `+c.word("heading")+`\n\nThe `+c.word("document")+` lies in the harbour."`)),
		post(docs+"/documents", title(`"format": "html", "text": "<h1>`+c.word("heading")+`</h1><p>`+c.word("document")+`"`)),
		post(docs+"/documents", title(`"format": "`+c.word("format")+`", "text": "x"`)),
		post(docs+"/documents", title(`"format": "docling", "text": "{\"`+c.word("document")+`"`)),
		post(docs+"/documents", title(`"format": "pdf", "data": "`+pages+`"`)),
		post(docs+"/documents", title(`"format": "text", "text": "x", "attributes": {"level": "`+c.word("attribute")+`"}, "regions": ["`+c.word("region")+`"]`)),
		post(docs+"/documents", `{"key": "k", "text": "`+c.word("malformed")),
		{"POST", docs + "/documents", `{"key": "n", "format": "text", "text": "` + c.word("line") + `"}` + "\n{" + c.word("broken") + "\n", bearer, "application/x-ndjson"},
		{"PATCH", docs + "/documents/k/access", `{"readers": ["user:` + c.word("reader") + `"]}`, bearer, "application/json"},
		{"PATCH", docs + "/documents/k/access", `{"readers": ["` + c.word("no reader") + `"]}`, bearer, "application/json"},
		post(docs+"/access/explain", `{"subject": "`+c.word("subject")+`", "documents": ["k"]}`),
		post(docs+"/access/preview", `{"documents": [{"key": "k", "readers": ["user:`+c.word("reader")+`"]}]}`),
		{"PUT", docs + "/queries", `{"queries": [{"query": "` + c.word("gate") + `", "relevant": ["k"], "principal": {"subject": "ann"}}]}`, bearer, "application/json"},
		post(docs+"/reindex/estimate", `{"chunker": "`+c.word("chunker")+`"}`),
		post("/v1/embeddings", `{"model": "m", "input": ["`+c.word("input")+`"]}`),
		post("/v1/embeddings", `{"model": "`+c.word("model")+`", "input": [`+strings.Repeat(`"`+c.word("input")+`",`, 3)+`{}]}`),
		post("/embed", `{"inputs": "`+strings.Repeat(c.word("long")+" ", 2000)+`"}`),
		post("/tokenize", `{"inputs": "`+c.word("input")+`"}`),
		post("/rerank", `{"query": "`+c.word("query")+`", "texts": ["`+c.word("input")+`"]}`),
		post("/v1/rerank", `{"query": "`+c.word("query")+`", "documents": ["`+c.word("input")+`"]}`),
		post("/predict", `{"inputs": "`+c.word("input")+`"}`),
		{"GET", docs + "/documents/" + c.word("key"), "", bearer, ""},
		{"GET", docs + "?" + c.word("parameter") + "=1", "", bearer, ""},
		{"GET", "/v1/" + c.word("path"), "", bearer, ""},
		{"GET", docs, "", "Bearer " + c.word("key without an owner"), ""},
		{"GET", docs, "", "Bearer " + c.word("header") + "." + c.word("claims") + "." + c.word("signature"), ""},
		{"GET", docs, "", "Basic " + c.word("password"), ""},
		{"GET", docs + "/documents", "", bearer, ""},
		{"DELETE", docs + "/documents/k", "", bearer, ""},
	}
	for _, strategy := range []string{"sparse", "dense", "hybrid", "hybrid-late", "hybrid-rerank", "late", c.word("strategy")} {
		calls = append(calls, post(docs+"/search", `{"query": "the `+c.word("query")+` in the harbour", "strategy": "`+strategy+`", "explain": true}`))
	}
	return calls
}

// send sends a call and returns its status.
func (c call) send(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequest(c.method, url+c.path, strings.NewReader(c.body))
	require.NoError(t, err)
	request.Header.Set("Authorization", c.authorization)
	request.Header.Set("Content-Type", c.contentType)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	response.Body.Close()
	return response.StatusCode
}

// Logs, audit log, metrics and traces repeat nothing of what clients sent to be kept,
// sought or proven, also at the level debug.
func TestNothingIsSaidOfTexts(t *testing.T) {
	t.Parallel()
	collector := tracestest.New(t)
	h := newHome(t, onePerson, settings{"admin_listen": "127.0.0.1:0", "traces": settings{"endpoint": collector.URL}, "log": settings{"level": "debug", "format": "json"}})
	p := launch(t, "serve", "--config", h.config(), "--reranker", tinyReranker(t))
	d := &served{p, h, p.await(&p.err, `"msg":"listening","url":"(http://[^"]+)"`)}
	admin := p.await(&p.err, `"msg":"listening for administrators","url":"(http://[^"]+)"`)
	c := canaries{}
	statuses := map[int]int{}
	for range 3 {
		for _, one := range c.day(h.keys["ann"]) {
			status := one.send(t, d.url)
			require.Less(t, status, 500, "%s %s", one.method, one.path)
			statuses[status/100]++
		}
	}
	require.Greater(t, statuses[2], 60, "most of a day goes well: %v", statuses)
	require.Greater(t, statuses[4], 30, "%v", statuses)
	said := map[string]string{"metrics": fetch(t, admin+"/metrics"), "goroutines": fetch(t, admin+"/debug/pprof/goroutine?debug=2")}
	d.stop()

	said["traces"] = collector.Raw()
	stages := map[string]bool{}
	for _, span := range collector.Spans() {
		stages[span.Name] = true
	}
	for _, stage := range []string{"POST /v1/collections/{collection}/search", "queue", "tokenize", "infer", "resolve", "dense", "lexical", "fuse", "recheck", "rerank", "load"} {
		require.True(t, stages[stage], "no span of %s: %v", stage, stages)
	}
	said["log"], said["output"] = p.err.text(), p.out.text()
	files, err := filepath.Glob(filepath.Join(h.data(), "audit", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		said["audit log"] += readText(t, file)
	}
	c["API key"] = h.keys["ann"]
	for where, text := range said {
		text = strings.ToLower(text)
		for kind, word := range c {
			if at := strings.Index(text, strings.ToLower(word)); at >= 0 {
				t.Errorf("the %s has the %s: …%s…", where, kind, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
	checkLog(t, said["log"])
}

// checkLog: every line is JSON, and every request has its line and id.
func checkLog(t *testing.T, text string) {
	t.Helper()
	requests := 0
	for line := range bytes.Lines([]byte(text)) {
		var record struct{ Msg, Request, Route string }
		require.NoError(t, json.Unmarshal(line, &record), "%s", line)
		if record.Msg == "request" {
			requests++
			require.NotEmpty(t, record.Request)
			require.NotEmpty(t, record.Route)
		}
	}
	require.GreaterOrEqual(t, requests, 3*len(canaries{}.day("")))
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}
