package local

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math"
	"math/bits"
	"slices"

	"golang.org/x/time/rate"
)

const (
	mergeFanout  = 4    // so many segments of one tier become one
	smallestTier = 1024 // rows; each tier is mergeFanout times the one before
	deadShare    = 3    // a segment with more than a third of its rows deleted is rewritten

	// Once nothing is ingested, no segment but the smaller ones of less than a
	// settledShare of its rows stays beside another: a search of lists costs
	// about the square root of their rows, so one of all is the cheapest.
	settledShare = 4
	mostMerged   = 4 << 20 // rows that are merged for that reason alone
)

// pace is how eagerly segments are merged.
type pace struct {
	atRest bool          // until the searches cost nearly the least; else as little as keeps their number logarithmic
	limit  *rate.Limiter // of bytes written; nil: as fast as the disk takes them
}

var ingesting, settled = pace{}, pace{atRest: true}

// pickMerge chooses the sealed parts to merge next: one with much deleted, all
// of the smallest tier that has many, at rest the smaller ones, or one that has
// no lists yet; none if all is well.
func pickMerge(parts []part, o Options, pace pace) []part {
	sealed, _ := split(parts)
	slices.SortStableFunc(sealed, func(a, b part) int { return cmp.Compare(a.liveRows(), b.liveRows()) })
	for _, p := range sealed {
		if int(p.dead)*deadShare > p.seg.rows() {
			return []part{p}
		}
	}
	if tier := smallestFull(sealed); tier != nil {
		return tier
	}
	if pace.atRest {
		if n := mergedAtRest(sealed); n > 1 {
			return sealed[:n]
		}
	}
	for _, p := range sealed {
		if p.seg.needsLists(o) {
			return []part{p}
		}
	}
	return nil
}

// smallestFull returns the parts of the first tier that has many, of parts by
// their rows; nil: none has.
func smallestFull(sealed []part) []part {
	for from, to := 0, 0; from < len(sealed); from = to {
		for to < len(sealed) && tier(sealed[to].liveRows()) == tier(sealed[from].liveRows()) {
			to++
		}
		if to-from >= mergeFanout {
			return sealed[from:to]
		}
	}
	return nil
}

// mergedAtRest is how many of the smallest parts are better merged.
func mergedAtRest(sealed []part) (n int) {
	rows := 0
	for i, p := range sealed {
		if i > 0 && p.liveRows() <= settledShare*rows && rows+p.liveRows() <= mostMerged {
			n = i + 1
		}
		rows += p.liveRows()
	}
	return n
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

	decoded  decoded // of the block that is being copied
	postings []posting
	places   []byte
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
