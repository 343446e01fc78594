package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/retrieve"
	"sluice/retrieve/answer/ground"
	"sluice/store"
)

const (
	depth         = 20 // results of a search
	rerankedDepth = 30 // where the model chooses among them
	rrfConstant   = 60

	maxPassage    = 2 << 10 // bytes that neighbours are merged to
	maxGap        = 512     // bytes between two chunks of a passage: headings
	bytesPerToken = 3       // at least, of the languages and tokenizers there are
	passageTokens = 40      // of what is around a passage's text
)

// Passage is what is cited: bytes [Start, End) of a document's normalised text.
type Passage struct {
	ID       string // S1, S2, …
	Key      string
	Version  uint32
	Title    string
	Start    int
	End      int
	Headings []string
	Text     string
	Score    float64

	relevance float64 // to the question, in late interaction; of its results the best
	related   bool    // relevance is known
	sections  []ground.Section
	shown     shown
}

// shown is what of a passage the model sees: what addresses it is withheld.
type shown struct{ title, headings, text string }

// whole is all that a sentence may be from.
func (s shown) whole() string { return s.title + "\n" + s.headings + "\n" + s.text }

// tokens are at most what the passage takes of the budget.
func (p Passage) tokens() int { return len(p.shown.whole())/bytesPerToken + passageTokens }

// sectionOf is a result as the model sees it.
func sectionOf(r found) ground.Section {
	return ground.Section{Titles: withhold(r.Title) + "\n" + withhold(strings.Join(r.Headings, " > ")), Text: withhold(r.Text)}
}

// found is a result with how good it is over all queries.
type found struct {
	retrieve.Result
	rank      float64 // sum of reciprocal ranks
	relevance float64
	related   bool
}

// retrieve searches, and assembles the context.
func (q *answering) retrieve(ctx, model context.Context) error {
	q.response.Queries = q.queries(model)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if q.request.Searching != nil {
		q.request.Searching(q.response.Queries)
	}
	results, err := q.search(ctx)
	if err != nil {
		return err
	}
	q.ended("search")
	err = q.assemble(ctx, results)
	q.ended("assemble")
	return err
}

// search asks all queries as the principal, and fuses what they find.
func (q *answering) search(ctx context.Context) ([]found, error) {
	var all []found
	for i, query := range q.response.Queries {
		response, err := q.Searcher.Search(ctx, retrieve.Request{
			Principal: q.request.Principal, Collection: q.request.Collection, Query: query, K: q.depth(), Scope: q.request.Scope, Explain: true,
		})
		if err != nil {
			return nil, err
		}
		q.degraded(response.Degraded...)
		all = fused(all, response.Results)
		if response.Results = nil; i == 0 {
			q.response.Search = response
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.rank, a.rank) })
	return all, q.speak(q.response.Search.Analyzer)
}

func (q *answering) depth() int {
	if q.Rerank && q.Chat != nil {
		return rerankedDepth
	}
	return depth
}

// fused adds results by reciprocal ranks (Cormack, Clarke, Büttcher: Reciprocal
// Rank Fusion, 2009).
func fused(all []found, results []retrieve.Result) []found {
	for rank, r := range results {
		i := slices.IndexFunc(all, func(f found) bool { return f.Key == r.Key && f.Version == r.Version && f.Start == r.Start })
		if i < 0 {
			i = len(all)
			all = append(all, found{Result: r})
		}
		all[i].rank += 1 / float64(rrfConstant+rank+1)
		if late, ok := r.Legs["late"]; ok {
			all[i].relevance, all[i].related = max(all[i].relevance, late.Score), true
		}
	}
	return all
}

// assemble makes passages of the results, best first, as far as the budget goes.
// Results that are neighbours in their document are one passage.
func (q *answering) assemble(ctx context.Context, results []found) error {
	texts := map[string]store.Content{}
	for _, r := range results {
		content, known := texts[r.Key]
		if !known {
			var err error
			content, err = q.Searcher.Document(ctx, q.request.Principal, q.request.Collection, r.Key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			texts[r.Key] = content
		}
		if content.Version == r.Version && r.End <= len(content.Text) { // else it is gone, or another
			q.add(content, r)
		}
	}
	left, kept := q.Tokens, q.context[:0]
	for _, p := range q.context {
		p.shown = shownOf(p)
		if tokens := p.tokens(); tokens <= left {
			left -= tokens
			p.ID = fmt.Sprintf("S%d", len(kept)+1)
			kept = append(kept, p)
		} else {
			q.degraded("context_cut")
		}
	}
	q.context = kept
	return nil
}

// add puts a result into the passage that it continues, or into one of its own.
func (q *answering) add(content store.Content, r found) {
	for i := range q.context {
		p := &q.context[i]
		start, end := min(p.Start, r.Start), max(p.End, r.End)
		if p.Key != r.Key || end-start > maxPassage || !touch(content, p.Start, p.End, r.Start, r.End) {
			continue
		}
		p.Start, p.End, p.Text = start, end, content.Text[start:end]
		p.Headings = common(p.Headings, r.Headings)
		p.relevance, p.related = max(p.relevance, r.relevance), p.related || r.related
		p.sections = append(p.sections, sectionOf(r))
		return
	}
	q.context = append(q.context, Passage{
		Key: r.Key, Version: r.Version, Title: r.Title, Start: r.Start, End: r.End, Headings: r.Headings, Text: r.Text, Score: r.Score,
		relevance: r.relevance, related: r.related, sections: []ground.Section{sectionOf(r)},
	})
}

// touch reports that no chunk is between two ranges of a document.
func touch(content store.Content, aStart, aEnd, bStart, bEnd int) bool {
	from, to := min(aEnd, bEnd), max(aStart, bStart)
	if to-from > maxGap {
		return false
	}
	for _, c := range content.Chunks {
		if c.Start >= from && c.End <= to {
			return false
		}
	}
	return true
}

func common(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func shownOf(p Passage) shown {
	return shown{withhold(p.Title), withhold(strings.Join(p.Headings, " > ")), withhold(p.Text)}
}

// source is what sentences that cite the passage are held against.
func (q *answering) source(p Passage) *ground.Source {
	if q.sources[p.ID] == nil {
		q.sources[p.ID] = ground.NewSource(p.sections, q.language)
	}
	return q.sources[p.ID]
}

// groundContext is what the sentences are judged in.
func (q *answering) groundContext() ground.Context {
	var shown []*ground.Source
	for _, p := range q.context {
		shown = append(shown, q.source(p))
	}
	return ground.NewContext(q.response.Queries[0], shown, q.language)
}
