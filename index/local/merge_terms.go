package local

import (
	"bytes"
	"cmp"
	"context"
	"slices"
)

// movedPosting is a posting on its way into a merged segment.
type movedPosting struct {
	posting
	places []byte // with the zero
}

// copyTerms walks the parts' terms side by side in byte order.
func (m *merger) copyTerms(ctx context.Context) error {
	at := make([]int, len(m.parts))
	var list []movedPosting
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		term := m.smallestTerm(at)
		if term == nil {
			return m.out.err
		}
		list = list[:0]
		for i, p := range m.parts {
			if !hasTerm(p.seg, at[i], term) {
				continue
			}
			_, encoded := p.seg.term(at[i])
			at[i]++
			var err error
			if list, err = m.appendMoved(list, i, encoded); err != nil {
				return err
			}
		}
		m.writeTerm(term, list)
	}
}

// smallestTerm returns the least of the terms the parts are at; nil at the end.
func (m *merger) smallestTerm(at []int) (least []byte) {
	for i, p := range m.parts {
		if at[i] < p.seg.terms() {
			if term, _ := p.seg.term(at[i]); least == nil || bytes.Compare(term, least) < 0 {
				least = term
			}
		}
	}
	return least
}

func hasTerm(s *segment, i int, term []byte) bool {
	if i >= s.terms() {
		return false
	}
	own, _ := s.term(i)
	return bytes.Equal(own, term)
}

// appendMoved decodes a part's list of a term and moves its postings to their
// new slots.
func (m *merger) appendMoved(list []movedPosting, part int, old postingList) ([]movedPosting, error) {
	if err := old.check(); err != nil {
		return nil, err
	}
	var b block
	for i := range old.blocks() {
		if err := b.open(old, i); err != nil {
			return nil, err
		}
		places, err := old.places(i)
		if err != nil {
			return nil, err
		}
		if err := b.decode(&m.decoded); err != nil {
			return nil, err
		}
		for j, slot := range m.decoded.slots {
			end := bytes.IndexByte(places, 0) + 1
			if end == 0 || int(slot) >= len(m.remap[part]) {
				return nil, damaged("posting")
			}
			if slot := m.remap[part][slot]; slot != dropped {
				list = append(list, movedPosting{posting{slot, m.decoded.freqs[j]}, places[:end]})
			}
			places = places[end:]
		}
	}
	return list, nil
}

func (m *merger) writeTerm(term []byte, list []movedPosting) {
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b movedPosting) int { return cmp.Compare(a.slot, b.slot) })
	m.postings, m.places = m.postings[:0], m.places[:0]
	for _, p := range list {
		m.postings = append(m.postings, p.posting)
		m.places = append(m.places, p.places...)
	}
	m.out.term(term, m.postings, m.places)
}
