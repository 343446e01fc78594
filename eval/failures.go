package eval

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sluice/chunk"
	"sluice/client"
	"sluice/document"
)

// Layer is the part of the service that a miss is held against.
type Layer string

// Layers, in the order in which an item passes them.
const (
	LayerAccess    Layer = "access"
	LayerElement   Layer = "element"   // what was read of the document
	LayerStructure Layer = "structure" // how it was cut
	LayerIndex     Layer = "index"     // what the legs found
	LayerOutcome   Layer = "outcome"   // how that was ranked
)

// Stage is where an item was lost: the first that it did not pass.
type Stage string

// Stages.
const (
	Denied       Stage = "denied"        // the document is not shown to who asks
	NotParsed    Stage = "not-parsed"    // the quote is not in the text, or not just once
	NotChunked   Stage = "not-chunked"   // it is in no chunk
	NotCandidate Stage = "not-candidate" // no leg has it among its hits
	LostInFusion Stage = "fusion"        // a leg has it, what both make together does not
	LostInRerank Stage = "rerank"        // it was scored again, and others were better
	RankedLow    Stage = "ranking"       // the one leg has it, others were better
)

var layers = map[Stage]Layer{
	Denied: LayerAccess, NotParsed: LayerElement, NotChunked: LayerStructure, NotCandidate: LayerIndex,
	LostInFusion: LayerOutcome, LostInRerank: LayerOutcome, RankedLow: LayerOutcome,
}

// Miss is an item that the first results do not meet.
type Miss struct {
	Case      string         `json:"case"`
	Query     string         `json:"query"`
	Principal string         `json:"principal"`
	Strategy  string         `json:"strategy"`
	Tags      []string       `json:"tags,omitempty"`
	Documents []string       `json:"documents"` // any of them would do
	Version   uint32         `json:"version"`
	Quote     string         `json:"quote,omitempty"`
	Layer     Layer          `json:"layer"`
	Stage     Stage          `json:"stage"`
	Cut       bool           `json:"cut"`            // no chunk has all of the quote
	Legs      map[string]int `json:"legs,omitempty"` // rank among each leg's hits, 0 for none
	Pool      int            `json:"pool"`           // rank in the whole pool, 0 for none
	Results   []AnswerResult `json:"results"`        // what was found in its place
}

// Failures are the misses of a run.
type Failures struct {
	Report
	At     int // how many first results an item must be among
	Items  int // asked for, over all strategies
	Misses []Miss
}

// Trace runs the cases and follows every item that the first results do not
// meet back to the stage that lost it.
func Trace(ctx context.Context, o Options, at int) (Failures, error) {
	if at < 1 || at > widest {
		return Failures{}, fmt.Errorf("the first %d results: use 1 to %d", at, widest)
	}
	r, err := newRunner(ctx, o)
	if err != nil {
		return Failures{}, err
	}
	tracer := &tracer{runner: r, found: Failures{At: at, Misses: []Miss{}}}
	err = errors.Join(tracer.run(ctx), r.backend.Close())
	tracer.found.Report = r.report
	if err != nil {
		return tracer.found, err
	}
	return tracer.found, tracer.found.write(o.Out)
}

// tracer adds to a runner what it finds of misses.
type tracer struct {
	*runner
	found Failures
}

func (tr *tracer) run(ctx context.Context) error {
	if err := tr.open(ctx); err != nil {
		return err
	}
	if len(tr.report.Findings) > 0 {
		return disagreement(tr.report.Findings)
	}
	return tr.each(ctx, tr.trace)
}

func (tr *tracer) trace(ctx context.Context, t trial) error {
	session, err := tr.session(ctx, t.Principal)
	if err != nil {
		return err
	}
	for _, e := range t.Evidence {
		item, stage, err := tr.place(ctx, session, t, e)
		if err != nil {
			return err
		}
		for _, strategy := range tr.options.Strategies {
			tr.found.Items++
			s := search{session: session, collection: tr.dataset.Name, t: t, strategy: strategy, item: item}
			if err := tr.follow(ctx, s, stage); err != nil {
				return fmt.Errorf("%s: %w", strategy, err)
			}
		}
	}
	tr.progress("search", len(tr.options.Strategies))
	return nil
}

// place finds an item in its document; a stage means that it is lost there.
func (tr *tracer) place(ctx context.Context, session Session, t trial, e Evidence) (located, Stage, error) {
	t.Evidence = []Evidence{e}
	items, err := tr.locateAll(ctx, session, t)
	var problem *client.Problem
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return located{Evidence: e}, Denied, nil
	case errors.Is(err, errNoPlace):
		return located{Evidence: e}, NotParsed, nil
	case err != nil:
		return located{}, "", err
	}
	return items[0], "", nil
}

// follow asks as the run does and, for an item that is missed, wider.
func (tr *tracer) follow(ctx context.Context, s search, stage Stage) error {
	response, err := s.ask(ctx, client.SearchRequest{K: max(tr.dataset.Depth, tr.found.At)})
	if err != nil {
		return err
	}
	ranked := s.t.ranking(response.Results)
	if rank := s.rank(ranked); rank > 0 && rank <= tr.found.At {
		return nil
	}
	m := Miss{
		Case: s.t.ID, Query: s.t.Query, Principal: s.t.Principal, Strategy: s.strategy, Tags: s.t.Tags, Documents: s.item.Documents,
		Version: s.item.Version, Quote: s.item.Quote, Stage: stage, Results: s.t.answer(s.strategy, response, 0).Results,
	}
	if s.strategy = response.Strategy; stage == "" {
		if err := tr.locate(ctx, s, response, &m); err != nil {
			return err
		}
	}
	m.Layer = layers[m.Stage]
	tr.found.Misses = append(tr.found.Misses, m)
	return nil
}

// locate finds the stage of an item that is in its document's text.
func (tr *tracer) locate(ctx context.Context, s search, response client.SearchResponse, m *Miss) error {
	touched, whole, err := tr.chunked(ctx, s)
	if err != nil {
		return err
	}
	if m.Cut = !whole; !touched {
		m.Stage = NotChunked
		return nil
	}
	if m.Legs, err = s.legs(ctx, response.Ranking); err != nil {
		return err
	}
	if m.Pool, err = s.pool(ctx, response.Ranking); err != nil {
		return err
	}
	m.Stage = s.stage(m.Legs, m.Pool)
	return nil
}

// chunked reports whether chunks of the document have a part of the quote, and
// whether one has all of it.
func (tr *tracer) chunked(ctx context.Context, s search) (touched, whole bool, err error) {
	if s.item.Quote == "" {
		return true, true, nil
	}
	key := s.item.Documents[0]
	info, err := s.session.Document(ctx, s.collection, key)
	if err != nil {
		return false, false, fmt.Errorf("getting document %s: %w", key, err)
	}
	chunker, err := chunk.Named(info.Chunker)
	if err != nil {
		return false, false, err
	}
	tree, err := document.Parse(info.Format, []byte(s.t.documents[key].Text))
	if err != nil {
		return false, false, fmt.Errorf("document %s: %w", key, err)
	}
	for _, c := range chunker.Chunk(tree) {
		touched = touched || c.Start < s.item.end && s.item.start < c.End
		whole = whole || c.Start <= s.item.start && s.item.end <= c.End
	}
	return touched, whole, nil
}

// search asks of one item by one strategy.
type search struct {
	session    Session
	collection string
	t          trial
	strategy   string
	item       located
}

// widest is the largest K that a search may have.
const widest = 100

func (s search) ask(ctx context.Context, r client.SearchRequest) (client.SearchResponse, error) {
	r.Query, r.Scope, r.Explain = s.t.Query, s.t.scope(), true
	if r.Strategy == "" {
		r.Strategy = s.strategy
	}
	response, err := s.session.Search(ctx, s.collection, r)
	if err != nil {
		return response, fmt.Errorf("searching: %w", err)
	}
	if response.Ranking == nil {
		return response, errors.New("the service does not say which depths it used: it is too old for this")
	}
	return response, nil
}

// rank is the 1-based rank of the first result that meets the item, 0 for none.
func (s search) rank(ranked []client.SearchResult) int {
	return 1 + slices.IndexFunc(ranked, s.item.metBy)
}

// legs are the item's ranks among the hits of each leg of the plan.
func (s search) legs(ctx context.Context, plan *client.Ranking) (map[string]int, error) {
	ranks := map[string]int{}
	for _, leg := range []struct {
		name, strategy string
		depth          int
	}{{"dense", "dense", plan.DenseDepth}, {"lexical", "sparse", plan.LexicalDepth}} {
		if leg.depth == 0 || s.strategy == "late" { // which ranks all, without legs
			continue
		}
		response, err := s.ask(ctx, client.SearchRequest{Strategy: leg.strategy, K: widest})
		if err != nil {
			return nil, err
		}
		ranks[leg.name] = s.inLeg(response.Results, leg.name, leg.depth)
	}
	return ranks, nil
}

func (s search) inLeg(results []client.SearchResult, leg string, depth int) int {
	for _, result := range results {
		if s.item.metBy(result) && result.Explain != nil && result.Explain.Legs[leg].Rank <= depth {
			return result.Explain.Legs[leg].Rank
		}
	}
	return 0
}

// pool is the item's rank among all that the same plan scores again.
func (s search) pool(ctx context.Context, plan *client.Ranking) (int, error) {
	if plan.PoolDepth == 0 && s.strategy != "late" {
		return 0, nil
	}
	response, err := s.ask(ctx, client.SearchRequest{K: min(max(plan.PoolDepth, 1), widest)})
	if err != nil {
		return 0, err
	}
	return s.rank(s.t.ranking(response.Results)), nil
}

// stage is where an item that the legs could find was lost.
func (s search) stage(legs map[string]int, pool int) Stage {
	found := false
	for _, rank := range legs {
		found = found || rank > 0
	}
	switch {
	case s.strategy == "late", found && len(legs) == 1:
		return RankedLow
	case pool > 0 && s.strategy != "hybrid":
		return LostInRerank
	case found:
		return LostInFusion
	}
	return NotCandidate
}
