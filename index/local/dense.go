package local

import (
	"context"
	"log/slog"
	"slices"

	"sluice/filter"
	"sluice/index"
	"sluice/index/local/ivf"
)

// denseSearch is one query of the dense leg. Every row's score comes from the
// same routine over the same numbers, wherever the row lies and however it was
// found, so it never depends on other rows.
type denseSearch struct {
	space    *ivf.Space
	log      *slog.Logger
	state    *snapshot
	allowed  filter.Set
	query    []float32
	prepared bool // *denseMemory's query is that one
	best     topK
	*denseMemory
}

// run returns the k best rows. The largest part comes first: the scores that
// it yields spare work in the others.
func (s *denseSearch) run(ctx context.Context, k int) ([]index.Hit, error) {
	if k < 1 || s.allowed.IsEmpty() {
		return nil, ctx.Err()
	}
	s.best = topK{k: k, list: s.contenders[:0]}
	for _, part := range s.state.largest {
		p := s.state.parts[part]
		a := p.seg.admitted(s.allowed)
		if s.searchHeld(ctx, part, a) {
			continue
		}
		if err := s.score(ctx, part, s.candidates(p, a)); err != nil {
			return nil, err
		}
	}
	hits := s.best.hits(s.state.ordinal)
	s.contenders = s.best.list
	return hits, nil
}

// fewRows are scored in float32 sooner than a query is prepared for codes.
const fewRows = 64

// candidates returns live slots, among them all that may be among the best.
func (s *denseSearch) candidates(p part, a admitted) []uint32 {
	if p.seg.codes == nil || a.Len() <= fewRows {
		var slots []uint32
		slots, s.live = a.Live(p.live, s.live)
		return slots
	}
	if !s.prepared {
		s.space.Prepare(&s.denseMemory.query, s.query)
		s.prepared = true
	}
	return p.seg.codes.index.Search(&s.denseMemory.query, a.Allowed, p.live, s.best.k, s.best.floor(), &s.near)
}

// scanStep is how many rows are scored between two looks at the context.
const scanStep = 1024

// score scores slots of a part in float32.
func (s *denseSearch) score(ctx context.Context, part int, slots []uint32) error {
	for some := range slices.Chunk(slots, scanStep) {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.dot(s.state.parts[part].seg, some)
		s.add(part, some)
	}
	return ctx.Err()
}

// dot sets s.scores to the products of the query with slots of a segment.
func (s *denseSearch) dot(seg *segment, slots []uint32) {
	s.scores = slices.Grow(s.scores[:0], len(slots))[:len(slots)]
	s.space.DotRows(s.query, seg.vectors, slots, s.scores)
}

// add lets the slots of s.scores contend.
func (s *denseSearch) add(part int, slots []uint32) {
	seg, before, floor := s.state.parts[part].seg, s.state.before[part], s.best.floor()
	for i, score := range s.scores {
		if score >= floor {
			s.best.add(contender{keyOf(score, seg.row(slots[i])), before + slots[i]})
		}
	}
	s.best.settle()
}
