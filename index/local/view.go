package local

import (
	"slices"
	"sync"

	"sluice/filter"
)

// view is what of a snapshot a Set admits. It is never changed.
type view struct {
	allowed filter.Set
	slots   []slotSet // by part
	rows    uint64
	length  uint64 // terms of all rows, by field weight
}

// recentViews remembers the last views asked for, the latest first: searches
// of one principal between two changes of the index share one.
type recentViews struct {
	mu    sync.Mutex
	views []*view
}

const maxViews = 16

// view returns what the Set admits. Two Sets of the same documents are the same.
func (s *snapshot) view(allowed filter.Set) *view {
	if v := s.seen.find(allowed); v != nil {
		return v
	}
	v := &view{allowed: allowed, slots: make([]slotSet, len(s.parts))}
	for i, p := range s.parts {
		var length uint64
		v.slots[i], length = p.visible(allowed)
		v.rows += v.slots[i].count
		v.length += length
	}
	s.seen.add(v)
	return v
}

// visible returns the live slots that the Set admits, and the terms of all.
func (p part) visible(allowed filter.Set) (slots slotSet, length uint64) {
	a := p.seg.admitted(allowed)
	slots, length = slotSet{words: a.Words(p.seg.rows()), count: uint64(a.Len())}, a.length
	if p.live == nil || slots.count == 0 {
		return slots, length
	}
	slots.words = slices.Clone(slots.words)
	for ordinal := range p.deleted.Iterate {
		if !allowed.Contains(ordinal) {
			continue
		}
		i, _ := p.seg.find(ordinal)
		d := p.seg.document(i)
		slots.count -= uint64(d.hi - d.lo)
		length -= d.length - p.seg.lengthBefore(i)
	}
	for i, live := range p.live {
		slots.words[i] &= live
	}
	return slots, length
}

func (r *recentViews) find(allowed filter.Set) *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, v := range r.views {
		if v.allowed == allowed || v.allowed.Equal(allowed) {
			copy(r.views[1:i+1], r.views[:i])
			r.views[0] = v
			return v
		}
	}
	return nil
}

func (r *recentViews) add(v *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.views) < maxViews {
		r.views = append(r.views, nil)
	}
	copy(r.views[1:], r.views)
	r.views[0] = v
}
