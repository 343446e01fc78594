package local

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"math"
	"math/bits"
	"slices"
)

const (
	mergeFanout  = 4    // so many segments of one tier become one
	smallestTier = 1024 // rows; each tier is mergeFanout times the one before
	deadShare    = 3    // a segment with more than a third of its rows deleted is rewritten
)

// pickMerge chooses the sealed parts to merge next, all of the smallest tier
// that has many, or one that is to be rewritten; none if all is well.
func pickMerge(parts []part, o Options) []part {
	tiers := map[int][]part{}
	for _, p := range parts {
		if p.seg.id == 0 {
			continue
		}
		if int(p.dead)*deadShare > p.seg.rows() {
			return []part{p}
		}
		t := tier(p.liveRows())
		tiers[t] = append(tiers[t], p)
	}
	for _, t := range slices.Sorted(maps.Keys(tiers)) {
		if len(tiers[t]) >= mergeFanout {
			return tiers[t]
		}
	}
	for _, p := range parts {
		if p.seg.id != 0 && p.seg.needsLists(o) {
			return []part{p}
		}
	}
	return nil
}

// tier is the logarithm to the base 4 of rows in units of smallestTier.
func tier(rows int) int { return (bits.Len(uint(rows/smallestTier)) + 1) / 2 }

// dropped marks slots that are not carried over.
const dropped = math.MaxUint32

// merger copies the live documents of parts into one segment.
type merger struct {
	parts []part
	remap [][]uint32 // by part: old slot → new slot or dropped
	out   *segmentWriter
}

// mergeParts writes one segment with the live documents of all parts, of which
// no two hold the same one.
func mergeParts(ctx context.Context, out io.Writer, dims int, parts []part) error {
	m := merger{parts: parts, out: newSegmentWriter(out, dims)}
	if err := m.copyRows(ctx); err != nil {
		return err
	}
	m.out.endRows()
	if err := m.copyTerms(ctx); err != nil {
		return err
	}
	return m.out.finish()
}

// mergeFresh merges parts in memory.
func mergeFresh(ctx context.Context, dims int, parts []part) (*segment, error) {
	var out bytes.Buffer
	if err := mergeParts(ctx, &out, dims, parts); err != nil {
		return nil, err
	}
	return openSegment(out.Bytes())
}

// copyRows writes the rows in order of their documents' ordinals.
func (m *merger) copyRows(ctx context.Context) error {
	m.remap = make([][]uint32, len(m.parts))
	for i, p := range m.parts {
		m.remap[i] = slices.Repeat([]uint32{dropped}, p.seg.rows())
	}
	for n, l := range m.liveDocuments() {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		seg := m.parts[l.part].seg
		for slot := l.lo; slot < l.hi; slot++ {
			m.remap[l.part][slot] = m.out.slots
			m.out.row(seg.row(slot), seg.length(slot), seg.vector(slot))
		}
		m.out.endDocument(l.ordinal)
	}
	return m.out.err
}

type liveDocument struct {
	document
	part int
}

func (m *merger) liveDocuments() (live []liveDocument) {
	for i, p := range m.parts {
		for d := range p.seg.documents() {
			if doc := p.seg.document(d); !p.isDeleted(doc.ordinal) {
				live = append(live, liveDocument{doc, i})
			}
		}
	}
	slices.SortFunc(live, func(a, b liveDocument) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return live
}

// copyTerms walks the parts' terms side by side in byte order.
func (m *merger) copyTerms(ctx context.Context) error {
	at := make([]int, len(m.parts))
	var old, list []posting
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
			if old, err = encoded.within([]span{{0, uint32(p.seg.rows())}}, old[:0]); err != nil {
				return err
			}
			list = m.appendMoved(list, i, old)
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

func (m *merger) appendMoved(list []posting, part int, old []posting) []posting {
	for _, p := range old {
		if slot := m.remap[part][p.slot]; slot != dropped {
			list = append(list, posting{slot, p.freq})
		}
	}
	return list
}

func (m *merger) writeTerm(term []byte, list []posting) {
	if len(list) == 0 {
		return
	}
	bySlot := func(a, b posting) int { return cmp.Compare(a.slot, b.slot) }
	if !slices.IsSortedFunc(list, bySlot) {
		slices.SortFunc(list, bySlot)
	}
	m.out.term(term, list)
}
