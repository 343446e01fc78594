package local

import "math/bits"

// slotSet are the visible slots of one part, as bits.
type slotSet struct {
	words []uint64
	count uint64
}

// word returns the bits of the slots from first, a multiple of 64, on. A nil
// set has all.
func (s *slotSet) word(first uint32) uint64 {
	if s == nil {
		return ^uint64(0)
	}
	if int(first>>6) >= len(s.words) {
		return 0
	}
	return s.words[first>>6]
}

func (s *slotSet) has(slot uint32) bool { return s == nil || s.bit(slot) != 0 }

// bit is 1 for a slot of the set, which is not nil, else 0.
func (s *slotSet) bit(slot uint32) int {
	if w := int(slot >> 6); w < len(s.words) {
		return int(s.words[w] >> (slot & 63) & 1)
	}
	return 0
}

// fewer reports whether not more than limit slots lie in [lo, last].
func (s *slotSet) fewer(lo, last uint32, limit int) bool {
	for first := lo &^ 63; first <= last && limit >= 0; first += 64 {
		limit -= bits.OnesCount64(s.word(first))
		if first+64 < first {
			break
		}
	}
	return limit >= 0
}

// within yields the slots in [lo, last], ascending.
func (s *slotSet) within(lo, last uint32) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for w := int(lo >> 6); w <= int(last>>6) && w < len(s.words); w++ {
			first := uint32(w) << 6
			for rest := s.words[w] & inside(first, lo, last+1); rest != 0; rest &= rest - 1 {
				if !yield(first + uint32(bits.TrailingZeros64(rest))) {
					return
				}
			}
		}
	}
}
