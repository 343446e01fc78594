package local

import (
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
func (s *snapshot) view(allowed filter.Set, memory *scratch) *view {
	if v := s.seen.find(allowed); v != nil {
		return v
	}
	v := &view{allowed: allowed, slots: make([]slotSet, len(s.parts))}
	v.rows, v.length = memory.choose(s.parts, allowed)
	for i, p := range s.parts {
		v.slots[i].fill(memory.selections[i].spans, p.seg.rows())
	}
	s.seen.add(v)
	return v
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
