package local

import (
	"context"
	"fmt"
	"math"

	"sluice/filter"
	"sluice/index"
	"sluice/index/text"
)

// Parameters of BM25: how fast repetition saturates, how much length counts.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// bm25 weighs one query term in one row:
//
//	w · ln(1 + (N − df + ½)/(df + ½)) · tf / (tf + k1·(1 − b + b·length/average))
//
// summed over the distinct terms of the query, in the order of their first
// occurrence, w being how often the query has the term. N, df and average are
// those of the allowed rows. This is "Lucene (accurate)" of Kamphuis, de Vries,
// Boytsov and Lin, "Which BM25 Do You Mean?", ECIR 2020.
type bm25 struct {
	rows    float64
	average float64
}

func (m bm25) idf(df int) float64 {
	return math.Log(1 + (m.rows-float64(df)+0.5)/(float64(df)+0.5))
}

// The conversions keep a compiler from fusing operations: equal bits everywhere.
func (m bm25) saturate(freq, length uint32) float64 {
	tf := float64(freq)
	relative := float64(bm25B * (float64(length) / m.average))
	return tf / (tf + float64(bm25K1*(1-bm25B+relative)))
}

// queryTerm is a distinct term of a query and how often it occurs there.
type queryTerm struct {
	term   string
	weight float64
}

func analyze(analyzer text.Analyzer, query string) (terms []queryTerm) {
	at := map[string]int{}
	for term := range analyzer.Terms(query) {
		i, ok := at[string(term)]
		if !ok {
			i = len(terms)
			at[string(term)] = i
			terms = append(terms, queryTerm{term: string(term)})
		}
		terms[i].weight++
	}
	return terms
}

// Lexical ranks the allowed rows that have a term of the query.
func (r *reader) Lexical(ctx context.Context, allowed filter.Set, query string, k int) ([]index.Hit, error) {
	if len(query) > index.MaxQueryBytes {
		return nil, fmt.Errorf("query of %d bytes, at most %d are taken: %w", len(query), index.MaxQueryBytes, index.ErrInvalid)
	}
	memory, err := r.begin()
	if err != nil {
		return nil, err
	}
	defer r.end(memory)
	rows, length := memory.choose(r.state.parts, allowed)
	if rows == 0 || length == 0 || k < 1 {
		return nil, ctx.Err()
	}
	search := lexicalSearch{
		parts:  r.state.parts,
		terms:  analyze(r.analyzer, query),
		model:  bm25{float64(rows), float64(length) / float64(rows)},
		memory: memory,
		best:   topK{k: k},
	}
	return search.run(ctx)
}

// lexicalSearch first collects the postings of all terms inside the selections,
// which gives the document frequencies, and then scores part by part.
type lexicalSearch struct {
	parts  []part
	terms  []queryTerm
	model  bm25
	memory *scratch
	best   topK
}

func (s *lexicalSearch) run(ctx context.Context) ([]index.Hit, error) {
	s.memory.matches, s.memory.ends = s.memory.matches[:0], s.memory.ends[:0]
	for i := range s.terms {
		if err := s.collect(ctx, &s.terms[i]); err != nil {
			return nil, err
		}
	}
	for i := range s.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.score(i)
	}
	return s.best.sorted(), ctx.Err()
}

// collect gathers the postings of a term in every part and turns its weight
// in the query into its weight in the score.
func (s *lexicalSearch) collect(ctx context.Context, t *queryTerm) (err error) {
	m := s.memory
	before := len(m.matches)
	for i, p := range s.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.matches, err = p.seg.lookup(t.term).within(m.selections[i].spans, m.matches); err != nil {
			return err
		}
		m.ends = append(m.ends, len(m.matches))
	}
	t.weight *= s.model.idf(len(m.matches) - before)
	return nil
}

// matches returns the postings collected of a term in a part.
func (s *lexicalSearch) matches(term, part int) []posting {
	list := term*len(s.parts) + part
	start := 0
	if list > 0 {
		start = s.memory.ends[list-1]
	}
	return s.memory.matches[start:s.memory.ends[list]]
}

// score sums up the terms of every matching row of a part. All weights are
// positive, so a score of zero is a row not yet touched.
func (s *lexicalSearch) score(part int) {
	seg, m := s.parts[part].seg, s.memory
	scores := m.zeroScores(seg.rows())
	m.touched = m.touched[:0]
	for t := range s.terms {
		for _, p := range s.matches(t, part) {
			if scores[p.slot] == 0 {
				m.touched = append(m.touched, p.slot)
			}
			scores[p.slot] += float64(s.terms[t].weight * s.model.saturate(p.freq, seg.length(p.slot)))
		}
	}
	for _, slot := range m.touched {
		s.offer(seg, slot, float32(scores[slot]))
		scores[slot] = 0
	}
}

func (s *lexicalSearch) offer(seg *segment, slot uint32, score float32) {
	if row := seg.row(slot); s.best.admits(score, row) {
		s.best.add(index.Hit{Row: row, Ordinal: seg.ordinalOf(slot), Score: score})
	}
}
