package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/filter"
	"sluice/gpu"
	"sluice/ingest"
	"sluice/model/tokenizer"
	"sluice/retrieve"
	answers "sluice/retrieve/answer"
	"sluice/store"
	"sluice/trace"
)

// fake is a Backend in memory: documents are readable by their readers (or by
// everybody, where undeclared), and a search finds them all.
type fake struct {
	mu          sync.Mutex
	collections map[string]store.Collection // by tenant and name
	documents   map[string]map[string]store.Content
	searched    []retrieve.Request
	written     []ingest.Document
	asked       []answers.Request

	onWrite  func(ctx context.Context, d ingest.Document) error
	onSearch func(ctx context.Context, r retrieve.Request) error
	onEmbed  func(texts []string) error
	onAnswer func(ctx context.Context, r answers.Request) (answers.Response, error)
	notReady error

	reindexes fakeReindexer

	models     *gpu.Scheduler // nil: made-up vectors
	reranker   gpu.Reranker
	classifier gpu.Classifier
}

func newFake() *fake {
	return &fake{collections: map[string]store.Collection{}, documents: map[string]map[string]store.Content{}}
}

func (f *fake) CreateCollection(_ context.Context, p filter.Principal, name string, s store.Settings) (store.Collection, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Analyzer = cmp.Or(s.Analyzer, "english")
	id := p.Tenant + "/" + name
	if c, ok := f.collections[id]; ok {
		if c.Settings != s {
			return store.Collection{}, false, store.ErrSettingsDiffer
		}
		return c, false, nil
	}
	f.collections[id] = store.Collection{Tenant: p.Tenant, Name: name, Settings: s, Created: time.Unix(1700000000, 0).UTC()}
	f.documents[id] = map[string]store.Content{}
	return f.collections[id], true, nil
}

func (f *fake) Collection(_ context.Context, p filter.Principal, name string) (store.Collection, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.collections[p.Tenant+"/"+name]
	if !ok {
		return c, fmt.Errorf("collection %s of tenant %s: %w", name, p.Tenant, store.ErrNotFound)
	}
	return c, nil
}

func (f *fake) Collections(_ context.Context, tenant string) (all []store.Collection, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.collections {
		if c.Tenant == tenant {
			all = append(all, c)
		}
	}
	return all, nil
}

func (f *fake) Policies(context.Context) (store.PolicySource, error) {
	return store.PolicySource{Schema: "entity User;", Policies: map[string]string{"a.cedar": "permit(principal, action, resource);"}}, nil
}

func (f *fake) Write(ctx context.Context, p filter.Principal, collection string, d ingest.Document) (ingest.Outcome, error) {
	if f.onWrite != nil {
		if err := f.onWrite(ctx, d); err != nil {
			return ingest.Outcome{}, err
		}
	}
	f.mu.Lock()
	f.written = append(f.written, d)
	f.mu.Unlock()
	if len(d.Passages) == 0 && !slices.Contains([]string{"markdown", "html", "text"}, d.Format) {
		return ingest.Outcome{}, fmt.Errorf("format %q: %w; use markdown, html or text", d.Format, store.ErrInvalid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	docs, ok := f.documents[p.Tenant+"/"+collection]
	if !ok {
		return ingest.Outcome{}, store.ErrNotFound
	}
	old, there := docs[d.Key]
	if there {
		d.Access = d.Access.Keeping(d.Keeps, old.Access)
	}
	same := there && old.Text == string(d.Text) && old.Title == d.Title
	r := store.Record{Key: d.Key, Title: d.Title, Format: d.Format, Chunker: d.Format + "/1", Version: old.Version, Rows: 1, Access: d.Access, Epoch: 7, Updated: time.Unix(1700000000, 0).UTC()}
	if !same {
		r.Version++
	}
	docs[d.Key] = store.Content{Record: r, Text: string(d.Text)}
	return ingest.Outcome{Receipt: store.Receipt{Record: r, Created: !there, Unchanged: same}, Truncated: 1}, nil
}

func (f *fake) readable(p filter.Principal, c store.Content) bool {
	readers := c.Access.Readers
	if readers.Undeclared || slices.Contains(readers.List, filter.Public) || slices.Contains(readers.List, filter.User(p.Subject)) {
		return true
	}
	return slices.ContainsFunc(p.Groups, func(g string) bool { return slices.Contains(readers.List, filter.Group(g)) })
}

func (f *fake) Document(_ context.Context, p filter.Principal, collection, key string) (store.Content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.documents[p.Tenant+"/"+collection][key]
	if !ok || !f.readable(p, c) {
		return store.Content{}, fmt.Errorf("document %s: %w", key, store.ErrNotFound)
	}
	return c, nil
}

func (f *fake) Delete(ctx context.Context, p filter.Principal, collection, key string) (uint64, error) {
	if _, err := f.Document(ctx, p, collection, key); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.documents[p.Tenant+"/"+collection], key)
	return 7, nil
}

func (f *fake) Epoch() uint64 { return 7 }

func (f *fake) SetAccess(ctx context.Context, p filter.Principal, collection, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.documents[p.Tenant+"/"+collection][key]
	if !ok {
		return store.Receipt{}, store.ErrNotFound
	}
	access, err := change(c.Access)
	if err != nil {
		return store.Receipt{}, fmt.Errorf("changing the access row: %w", err)
	}
	c.Access = access
	f.documents[p.Tenant+"/"+collection][key] = c
	return store.Receipt{Record: c.Record, AccessOnly: true}, nil
}

func (f *fake) List(_ context.Context, p filter.Principal, collection, cursor string, limit int) (page []store.Record, next string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	docs, ok := f.documents[p.Tenant+"/"+collection]
	if !ok {
		return nil, "", store.ErrNotFound
	}
	for key, c := range docs {
		if key > cursor && f.readable(p, c) {
			page = append(page, c.Record)
		}
	}
	slices.SortFunc(page, func(a, b store.Record) int { return cmp.Compare(a.Key, b.Key) })
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Key
	}
	return page, next, nil
}

func (f *fake) Search(ctx context.Context, r retrieve.Request) (retrieve.Response, error) {
	if f.onSearch != nil {
		if err := f.onSearch(ctx, r); err != nil {
			return retrieve.Response{}, err
		}
	}
	records, _, err := f.List(ctx, r.Principal, r.Collection, "", r.K)
	if err != nil {
		return retrieve.Response{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.searched = append(f.searched, r)
	record(ctx, "resolve", 1500*time.Microsecond)
	record(ctx, "dense", 2*time.Millisecond)
	record(ctx, "dense", time.Millisecond) // of another part
	response := retrieve.Response{
		Strategy: cmp.Or(r.Strategy, "hybrid"), PlanHash: "abc", Ranking: r.Ranking, Visible: len(records), Epoch: 7, Complexity: 0.4,
	}
	for i, record := range records {
		response.Results = append(response.Results, retrieve.Result{
			Key: record.Key, Version: record.Version, End: 4, Text: "text", Score: 1 / float64(i+1),
			Legs: map[string]retrieve.LegRank{"dense": {Rank: i + 1, Score: .5}},
		})
	}
	return response, nil
}

func (f *fake) Answer(ctx context.Context, r answers.Request) (answers.Response, error) {
	found, err := f.Search(ctx, retrieve.Request{Principal: r.Principal, Collection: r.Collection, Query: r.Question, K: 5, Scope: r.Scope})
	if err != nil {
		return answers.Response{}, err
	}
	f.mu.Lock()
	f.asked = append(f.asked, r)
	f.mu.Unlock()
	if f.onAnswer != nil {
		return f.onAnswer(ctx, r)
	}
	response := answers.Response{Outcome: answers.Evidence, Queries: []string{r.Question}, Dropped: map[string]int{}, Search: found}
	for i, one := range found.Results {
		response.Passages = append(response.Passages, answers.Passage{ID: fmt.Sprintf("S%d", i+1), Key: one.Key, Version: one.Version, End: one.End, Text: one.Text})
	}
	response.Search.Results = nil
	return response, nil
}

func (f *fake) Embed(ctx context.Context, r gpu.Request) ([]gpu.Embedding, error) {
	if f.models != nil {
		return f.models.Embed(ctx, r)
	}
	if f.onEmbed != nil {
		if err := f.onEmbed(r.Texts); err != nil {
			return nil, err
		}
	}
	all := make([]gpu.Embedding, len(r.Texts)+len(r.IDs))
	for i, ids := range r.IDs {
		all[i] = gpu.Embedding{Vector: []float32{float32(len(ids)), 4, 0}, Norm: 1, Tokens: len(ids)}
	}
	for i, t := range r.Texts {
		all[i] = gpu.Embedding{Vector: []float32{float32(len(t)), -0.5, 1e-7}, Tokens: 3, Truncated: len(t) > 20, Timing: gpu.Timing{Tokenize: 1e6, Queue: 2e6, Run: time.Duration(len(t)) * 1e6}}
	}
	return all, nil
}

func (f *fake) Info() gpu.Info {
	if f.models != nil {
		return f.models.Info()
	}
	return gpu.Info{Model: "tiny", Dimensions: 3, TokenDimensions: 3, MaxTokens: 16}
}

func (f *fake) Tokenizer() *tokenizer.Tokenizer { return f.models.Tokenizer() }

func (f *fake) Reranker() gpu.Reranker { return f.reranker }

func (f *fake) Classifier() gpu.Classifier { return f.classifier }

func (f *fake) Ready(context.Context) error { return f.notReady }

func (f *fake) PreviewAccess(_ context.Context, tenant, collection string, s retrieve.Supposition, principals []retrieve.Previewed) (retrieve.Preview, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	docs, ok := f.documents[tenant+"/"+collection]
	if !ok {
		return retrieve.Preview{}, store.ErrNotFound
	}
	p := retrieve.Preview{Compared: len(principals), Failed: map[int]error{}}
	for i, c := range s.Changes {
		if _, there := docs[c.Key]; !there {
			p.Failed[i] = store.ErrNotFound
		}
	}
	for _, who := range principals {
		p.Differences = append(p.Differences, retrieve.Difference{Name: who.Name, Gains: len(who.Groups), Gained: who.Groups, Lost: []string{}})
	}
	return p, nil
}

func (f *fake) ExplainAccess(_ context.Context, p filter.Principal, collection, key string) (store.Record, filter.Explanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.documents[p.Tenant+"/"+collection][key]
	if !ok {
		return store.Record{}, filter.Explanation{}, store.ErrNotFound
	}
	return c.Record, filter.Explanation{Undeclared: c.Access.Readers.Undeclared, Permitted: true, Decisive: []string{"a.cedar:1:1"}}, nil
}

func record(ctx context.Context, stage string, took time.Duration) {
	trace.From(ctx).AddSpan(trace.Span{Name: stage, End: time.Time{}.Add(took)})
}
