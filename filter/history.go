package filter

import (
	"cmp"
	"slices"
)

// Bounds on what a View remembers of earlier changes. Beyond them a Set is
// made anew, which then costs little more than to bring it forward.
const (
	maxDeltas        = 512
	maxDeltaOrdinals = 4096
)

// delta is one Apply: the state it led to, and the documents it touched.
type delta struct {
	state    uint64
	ordinals []uint32
}

// history is the last deltas before a View, oldest first, from the state of
// base on. Histories are values: each View has its own.
type history struct {
	base   uint64
	deltas []delta
}

// then returns the history with one more delta, and without the oldest ones
// that are too many. After a delta that is too large nothing before it counts.
func (h history) then(d delta) history {
	if len(d.ordinals) > maxDeltaOrdinals {
		return history{base: d.state}
	}
	drop := max(0, len(h.deltas)+1-maxDeltas)
	next := history{base: h.base, deltas: make([]delta, 0, len(h.deltas)-drop+1)}
	if drop > 0 {
		next.base = h.deltas[drop-1].state
	}
	next.deltas = append(append(next.deltas, h.deltas[drop:]...), d)
	return next
}

// since returns the documents touched after the state, or false where the
// state is not one of this history, or they are too many.
func (h history) since(state uint64) (touched []uint32, ok bool) {
	first := 0
	if state != h.base {
		i, found := slices.BinarySearchFunc(h.deltas, state, func(d delta, state uint64) int {
			return cmp.Compare(d.state, state)
		})
		if !found {
			return nil, false
		}
		first = i + 1
	}
	for _, d := range h.deltas[first:] {
		if touched = append(touched, d.ordinals...); len(touched) > maxDeltaOrdinals {
			return nil, false
		}
	}
	slices.Sort(touched)
	return slices.Compact(touched), true
}
