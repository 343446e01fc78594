package local

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

// part is a segment and what of it is deleted. Parts are values; the bitmap is
// never changed once a snapshot holds it.
type part struct {
	seg     *segment
	deleted *roaring.Bitmap // ordinals; nil: none
	dead    uint32          // rows of the deleted documents
	live    []uint64        // by slot; nil: all. Not changed either
}

func (p part) isDeleted(ordinal uint32) bool {
	return p.deleted != nil && p.deleted.Contains(ordinal)
}

// holds reports whether the row is live and belongs to the ordinal.
func (p part) holds(ordinal, row uint32) bool {
	i, ok := p.seg.find(ordinal)
	if !ok || p.isDeleted(ordinal) {
		return false
	}
	d := p.seg.document(i)
	for slot := d.lo; slot < d.hi; slot++ {
		if p.seg.row(slot) == row {
			return true
		}
	}
	return false
}

func (p part) liveRows() int { return p.seg.rows() - int(p.dead) }

// without returns the part with the ordinals deleted that it holds.
func (p part) without(ordinals []uint32) part {
	cloned := false
	for _, ordinal := range ordinals {
		i, ok := p.seg.find(ordinal)
		if !ok || p.isDeleted(ordinal) {
			continue
		}
		if !cloned {
			p.deleted, p.live, cloned = cloneBitmap(p.deleted), p.cloneLive(), true
		}
		p.deleted.Add(ordinal)
		d := p.seg.document(i)
		p.dead += d.hi - d.lo
		p.bury(d)
	}
	return p
}

func (p part) cloneLive() []uint64 {
	if p.live == nil {
		return liveBits(p.seg.rows())
	}
	return slices.Clone(p.live)
}

// bury clears the live bits of a document.
func (p part) bury(d document) {
	for slot := d.lo; slot < d.hi; slot++ {
		p.live[slot/64] &^= 1 << (slot % 64)
	}
}

func cloneBitmap(b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil {
		return roaring.New()
	}
	return b.Clone()
}

// snapshot is one consistent state: what a Reader sees. It holds its segments
// until the last of the index and the readers lets go of it.
type snapshot struct {
	parts   []part   // an ordinal is live in at most one
	before  []uint32 // by part: slots of all parts before it
	largest []int    // parts in the order in which the dense leg searches them
	epoch   uint64
	refs    atomic.Int64
	seen    recentViews
}

func newSnapshot(epoch uint64, parts []part) *snapshot {
	s := &snapshot{parts: parts, epoch: epoch}
	s.refs.Store(1)
	slots := uint32(0)
	for i, p := range parts {
		p.seg.acquire()
		s.before, s.largest = append(s.before, slots), append(s.largest, i)
		slots += uint32(p.seg.rows())
	}
	slices.SortStableFunc(s.largest, func(a, b int) int { return cmp.Compare(parts[b].seg.rows(), parts[a].seg.rows()) })
	return s
}

// ordinal returns the document of a slot counted through all parts.
func (s *snapshot) ordinal(slot uint32) uint32 {
	part := len(s.parts) - 1
	for slot < s.before[part] {
		part--
	}
	return s.parts[part].seg.ordinalOf(slot - s.before[part])
}

// acquire reports false if the last holder has let go.
func (s *snapshot) acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *snapshot) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	for _, p := range s.parts {
		p.seg.release()
	}
}
