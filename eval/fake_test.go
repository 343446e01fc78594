package eval

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"sluice/client"
)

// fakeBackend is a service that knows the labels: it stores what is written,
// shows each principal what the labels say and ranks all evidence first. Its
// hooks make it misbehave.
type fakeBackend struct {
	dataset *Dataset
	stored  map[string]map[string]*client.DocumentInfo // by tenant and key
	labels  map[string]map[string]Document             // the same, as labelled
	pages   int                                        // documents a page of a listing
	closed  bool

	onList     func(p Principal, listing []client.DocumentInfo) []client.DocumentInfo
	onSearch   func(p Principal, response *client.SearchResponse)
	onRequest  func(request client.SearchRequest, response *client.SearchResponse)
	refused    error // of every document asked for
	onRefusal  func(s fakeSession, key string, problem *client.Problem)
	onWrite    func(result *client.WriteResult)
	onDocument func(doc *client.DocumentInfo)
	onAnswer   func(p Principal, r client.AnswerRequest, a *client.Answer)
}

func newFake(d *Dataset) *fakeBackend {
	return &fakeBackend{dataset: d, stored: map[string]map[string]*client.DocumentInfo{}, pages: 7}
}

func (f *fakeBackend) connect(_ context.Context, d *Dataset) (Backend, error) {
	f.dataset, f.labels = d, map[string]map[string]Document{}
	for _, tenant := range d.Tenants() {
		f.labels[tenant] = d.current(tenant)
	}
	return f, nil
}

func (f *fakeBackend) As(_ context.Context, p Principal) (Session, error) {
	return fakeSession{f, p}, nil
}

func (f *fakeBackend) Close() error { f.closed = true; return nil }

type fakeSession struct {
	*fakeBackend
	principal Principal
}

func (s fakeSession) CreateCollection(context.Context, string, client.CollectionSettings) (client.Collection, error) {
	s.stored[s.principal.Tenant] = map[string]*client.DocumentInfo{}
	return client.Collection{Model: "fake"}, nil
}

func (s fakeSession) Ingest(_ context.Context, _ string, documents iter.Seq2[client.Document, error], onResult func(client.WriteResult) error) error {
	tenant := s.stored[s.principal.Tenant]
	for doc, err := range documents {
		if err != nil {
			return err
		}
		version := uint32(1)
		if old, ok := tenant[doc.Key]; ok {
			version = old.Version + 1
		}
		tenant[doc.Key] = &client.DocumentInfo{Key: doc.Key, Version: version, Format: doc.Format, Chunker: "structure/1", Text: doc.Text}
		result := client.WriteResult{Key: doc.Key, Status: "created", Version: version}
		if s.onWrite != nil {
			s.onWrite(&result)
		}
		if result.Key == "" { // lost
			continue
		}
		if err := onResult(result); err != nil {
			return err
		}
	}
	return nil
}

// visible is what the labels let the principal see, in the order of keys.
func (s fakeSession) visible() []client.DocumentInfo {
	var documents []client.DocumentInfo
	for _, key := range slices.Sorted(maps.Keys(s.dataset.Visible[s.principal.Name])) {
		if doc, ok := s.stored[s.principal.Tenant][key]; ok {
			documents = append(documents, *doc)
		}
	}
	return documents
}

func (s fakeSession) List(_ context.Context, _, after string, limit int) (client.Listing, error) {
	documents := s.visible()
	if s.onList != nil {
		documents = s.onList(s.principal, documents)
	}
	from, _ := strconv.Atoi(after)
	to := min(from+min(s.pages, limit), len(documents))
	listing := client.Listing{Documents: documents[from:to]}
	if to < len(documents) {
		listing.Next = strconv.Itoa(to)
	}
	return listing, nil
}

func (s fakeSession) Document(_ context.Context, _, key string) (client.DocumentInfo, error) {
	if s.refused != nil {
		return client.DocumentInfo{}, s.refused
	}
	for _, doc := range s.visible() {
		if doc.Key == key {
			if s.onDocument != nil {
				s.onDocument(&doc)
			}
			return doc, nil
		}
	}
	problem := &client.Problem{Title: "Not found", Status: 404}
	if s.onRefusal != nil {
		s.onRefusal(s, key, problem)
	}
	return client.DocumentInfo{}, problem
}

func (s fakeSession) Search(_ context.Context, _ string, request client.SearchRequest) (client.SearchResponse, error) {
	response := client.SearchResponse{Strategy: request.Strategy, Plan: "plan-" + request.Strategy, Degraded: []string{}}
	response.Counts = s.counts(request)
	c := s.caseOf(request)
	for _, e := range c.Evidence {
		response.Results = append(response.Results, s.passage(e))
	}
	if s.onRequest != nil {
		s.onRequest(request, &response)
	}
	if s.onSearch != nil {
		s.onSearch(s.principal, &response)
	}
	return response, nil
}

func (s fakeSession) counts(request client.SearchRequest) client.Counts {
	region, at := s.principal.region(), time.Now()
	if request.Scope != nil && request.Scope.Region != nil {
		region = *request.Scope.Region
	}
	if request.Scope != nil && request.Scope.AsOf != nil {
		at = *request.Scope.AsOf
	}
	counts := client.Counts{}
	for _, doc := range s.visible() {
		counts.Visible++
		if !s.labels[s.principal.Tenant][doc.Key].applies(region, at) {
			counts.OutOfScope++
		}
	}
	return counts
}

// caseOf finds the case that asks this; the scope is what tells some apart.
func (s fakeSession) caseOf(request client.SearchRequest) Case {
	for _, c := range s.dataset.Cases {
		scope := trial{Case: c}.scope()
		if c.Query == request.Query && c.Principal == s.principal.Name && (scope == nil) == (request.Scope == nil) {
			return c
		}
	}
	return Case{}
}

// passage is the evidence's quote itself, or the start of its document.
func (s fakeSession) passage(e Evidence) client.SearchResult {
	text := s.stored[s.principal.Tenant][e.Documents[0]].Text
	start, end := 0, min(20, len(text))
	if e.Quote != "" {
		start, end, _ = locate(text, e.Quote, s.dataset.Matching)
	}
	return client.SearchResult{Document: e.Documents[0], Version: e.Version, Start: start, End: end, Text: text[start:end], Score: 1}
}
