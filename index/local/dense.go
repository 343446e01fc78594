package local

import (
	"context"

	"sluice/filter"
	"sluice/index"
	"sluice/index/local/ivf"
)

// denseSearch is one query of the dense leg. Every row's score comes from the
// same routine over the same numbers, wherever the row lies and however it was
// found, so it never depends on other rows.
type denseSearch struct {
	space   *ivf.Space
	allowed filter.Set
	query   []float32
	memory  *scratch
	best    topK
}

// run returns the k best rows. Parts with codes come first: what they yield
// spares work in the others.
func (s *denseSearch) run(ctx context.Context, parts []part) ([]index.Hit, error) {
	if s.best.k < 1 || s.allowed.IsEmpty() {
		return nil, ctx.Err()
	}
	prepared := false
	for _, p := range parts {
		if p.seg.codes == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !prepared {
			s.space.Prepare(&s.memory.query, s.query)
			prepared = true
		}
		s.searchCodes(p)
	}
	for _, p := range parts {
		if p.seg.codes == nil {
			if err := s.scan(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	return s.best.sorted(), ctx.Err()
}

func (s *denseSearch) searchCodes(p part) {
	slots := p.seg.codes.index.Search(&s.memory.query, p.seg.allowedSlots(s.allowed), p.live, s.best.k, s.best.worst(), &s.memory.near)
	for _, slot := range slots {
		s.space.Fetch(p.seg.vector(slot))
	}
	for _, slot := range slots {
		s.score(p.seg, slot)
	}
}

// scan scores every allowed row of a part.
func (s *denseSearch) scan(ctx context.Context, p part) error {
	seen := 0
	p.seg.eachShared(s.allowed, func(d document) bool {
		if p.isDeleted(d.ordinal) {
			return true
		}
		for slot := d.lo; slot < d.hi; slot++ {
			s.score(p.seg, slot)
		}
		before := seen / scanStep
		seen += int(d.hi - d.lo)
		return seen/scanStep == before || ctx.Err() == nil
	})
	return ctx.Err()
}

func (s *denseSearch) score(seg *segment, slot uint32) {
	score := s.space.Dot(s.query, seg.vector(slot))
	if !s.best.beats(score) {
		return
	}
	if row := seg.row(slot); s.best.admits(score, row) {
		s.best.add(index.Hit{Row: row, Ordinal: seg.ordinalOf(slot), Score: score})
	}
}
