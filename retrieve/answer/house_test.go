package answer

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/gpu"
	"sluice/model/chat"
	"sluice/retrieve"
	"sluice/store"
)

// page is a document of the library: a chunk for each of its paragraphs.
type page struct {
	title, text string
	readers     []string  // subjects; none: everybody
	relevance   []float64 // of each paragraph; none: 1
	version     uint32    // 0 is 1
}

// library is a Searcher that finds every paragraph that the asker may read, in
// order of keys.
type library struct {
	mu       sync.Mutex
	pages    map[string]page
	searched []retrieve.Request
	degraded []string
	err      error
}

func (l *library) content(key string) store.Content {
	p := l.pages[key]
	c := store.Content{Record: store.Record{Key: key, Title: p.title, Version: max(p.version, 1)}, Text: p.text}
	at := 0
	for _, paragraph := range strings.Split(p.text, "\n\n") {
		c.Chunks = append(c.Chunks, chunk.Chunk{Start: at, End: at + len(paragraph), Headings: []string{p.title}})
		at += len(paragraph) + 2
	}
	return c
}

func (l *library) readable(p filter.Principal, key string) bool {
	page, there := l.pages[key]
	return there && (len(page.readers) == 0 || slices.Contains(page.readers, p.Subject))
}

func (l *library) Document(_ context.Context, p filter.Principal, _, key string) (store.Content, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.readable(p, key) {
		return store.Content{}, store.ErrNotFound
	}
	return l.content(key), nil
}

func (l *library) Search(_ context.Context, r retrieve.Request) (retrieve.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searched = append(l.searched, r)
	out := retrieve.Response{Analyzer: "english", Degraded: l.degraded}
	for _, key := range slices.Sorted(keysOf(l.pages)) {
		if !l.readable(r.Principal, key) {
			continue
		}
		out.Visible++
		content := l.content(key)
		for i, c := range content.Chunks {
			relevance := 1.0
			if all := l.pages[key].relevance; i < len(all) {
				relevance = all[i]
			}
			out.Results = append(out.Results, retrieve.Result{
				Key: key, Version: content.Version, Title: content.Title, Start: c.Start, End: c.End, Headings: c.Headings, Text: content.Text[c.Start:c.End],
				Legs: map[string]retrieve.LegRank{"late": {Score: relevance}},
			})
		}
	}
	out.Results = out.Results[:min(len(out.Results), r.K)]
	return out, l.err
}

func keysOf(pages map[string]page) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range pages {
			if !yield(key) {
				return
			}
		}
	}
}

func (l *library) change(do func(pages map[string]page)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.pages)
}

// vectors gives every text a direction of its own, but for those named alike.
type vectors map[string]string

func (v vectors) Info() gpu.Info { return gpu.Info{} }

func (v vectors) Embed(_ context.Context, r gpu.Request) ([]gpu.Embedding, error) {
	var all []gpu.Embedding
	for _, text := range r.Texts {
		if same, ok := v[text]; ok {
			text = same
		}
		hash := fnv.New32a()
		hash.Write([]byte(text))
		vector := make([]float32, 4096)
		vector[hash.Sum32()%4096] = 1
		all = append(all, gpu.Embedding{Vector: vector})
	}
	return all, nil
}

// counted is an Observer that keeps what it hears.
type counted struct {
	mu       sync.Mutex
	asked    []string
	answered []Response
}

func (c *counted) Asked(purpose string, _ time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		purpose += " failed"
	}
	c.asked = append(c.asked, purpose)
}

func (c *counted) Answered(r Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = append(c.answered, r)
}

// house is an Answerer with all that it stands on.
type house struct {
	*Answerer
	t       *testing.T
	library *library
	counted *counted
	mu      sync.Mutex
	prompts []string // what the model was shown
}

// newHouse has a model that says what say returns to the n-th prompt, from 0; nil: none.
func newHouse(t *testing.T, pages map[string]page, say func(n int, prompt string, w http.ResponseWriter)) *house {
	h := &house{t: t, library: &library{pages: pages}, counted: &counted{}}
	o := Options{
		Searcher: h.library, Embedder: vectors{"Germany": "EU"}, Timeout: time.Minute, Tokens: DefaultTokens, Relevance: .5,
		Prices: Prices{Prompt: 2, Completion: 10}, Observer: h.counted,
	}
	if say != nil {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			h.mu.Lock()
			n := len(h.prompts)
			h.prompts = append(h.prompts, string(body))
			h.mu.Unlock()
			say(n, string(body), w)
		}))
		t.Cleanup(server.Close)
		o.Chat = chat.New(server.URL, "m", "key")
	}
	h.Answerer = New(o)
	return h
}

// shown is what the model was shown: it may still be at what nobody waits for.
func (h *house) shown() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.prompts)
}

func (h *house) ask(question string, history ...Turn) Response {
	h.t.Helper()
	r, err := h.Answer(h.t.Context(), request("ann", question, history...))
	require.NoError(h.t, err)
	return r
}

func request(who, question string, history ...Turn) Request {
	return Request{Principal: filter.Principal{Tenant: "acme", Subject: who}, Collection: "c", Question: question, History: history}
}

// says is a model that always says the same.
func says(content string) func(int, string, http.ResponseWriter) {
	return func(_ int, _ string, w http.ResponseWriter) { reply(w, content) }
}

// turns is a model that says one thing after the other, then the last again.
func turns(contents ...string) func(int, string, http.ResponseWriter) {
	return func(n int, _ string, w http.ResponseWriter) { reply(w, contents[min(n, len(contents)-1)]) }
}

func reply(w http.ResponseWriter, content string) {
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": content}}},
		"usage":   map[string]int{"prompt_tokens": 100, "completion_tokens": 10},
	})
}

// sentences is the reply of one sentence for each text, all citing the ids.
func sentences(ids string, texts ...string) string {
	var all []Sentence
	for _, text := range texts {
		all = append(all, Sentence{text, strings.Fields(ids)})
	}
	text, _ := json.Marshal(map[string]any{"sentences": all})
	return string(text)
}

var errBroken = errors.New("broken")
