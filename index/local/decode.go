package local

import "math/bits"

// decoded are the postings taken from one block.
type decoded struct {
	slots [blockPostings]uint32
	freqs [blockPostings]uint32
	index [blockPostings]uint8 // in the block
}

// decode takes the postings with visible slots in [lo, hi) and returns how many
// there are.
func (b *block) decode(dst *decoded, lo, hi uint32, visible *slotSet) (n int) {
	if b.width == bitmapWidth {
		n = b.decodeBitmap(dst, max(lo, b.base), hi, visible)
	} else if visible == nil {
		n = b.decodePacked(dst, max(lo, b.base), hi)
	} else {
		n = b.decodeVisible(dst, max(lo, b.base), hi, visible)
	}
	b.decodeFreqs(dst, n)
	return n
}

func (b *block) decodeFreqs(dst *decoded, n int) {
	if b.freqWidth == 0 {
		for i := range n {
			dst.freqs[i] = 1
		}
		return
	}
	for i := range n {
		dst.freqs[i] = b.freq(int(dst.index[i]))
	}
}

func (b *block) start(lo uint32) int {
	if lo <= b.base {
		return 0
	}
	return b.search(lo)
}

func (b *block) decodePacked(dst *decoded, lo, hi uint32) (n int) {
	for i := b.start(lo); i < b.n; i++ {
		slot := b.packedSlot(i)
		if slot >= hi {
			break
		}
		dst.slots[n], dst.index[n] = slot, uint8(i)
		n++
	}
	return n
}

func (b *block) decodeVisible(dst *decoded, lo, hi uint32, visible *slotSet) (n int) {
	for i := b.start(lo); i < b.n; i++ {
		slot := b.packedSlot(i)
		if slot >= hi {
			break
		}
		if visible.has(slot) {
			dst.slots[n], dst.index[n] = slot, uint8(i)
			n++
		}
	}
	return n
}

func (b *block) decodeBitmap(dst *decoded, lo, hi uint32, visible *slotSet) (n int) {
	before := 0
	for w := range bitmapWords(b.base, b.last) {
		first := b.base&^63 + uint32(w)<<6
		if first >= hi {
			break
		}
		word := b.word(w)
		for rest := word & inside(first, lo, hi) & visible.word(first); rest != 0; rest &= rest - 1 {
			bit := bits.TrailingZeros64(rest)
			i := before + bits.OnesCount64(word&(1<<bit-1))
			if i >= b.n || n == blockPostings {
				return n
			}
			dst.slots[n], dst.index[n] = first+uint32(bit), uint8(i)
			n++
		}
		before += bits.OnesCount64(word)
	}
	return n
}

// inside are the bits of the slots first…first+63 that lie in [lo, hi).
func inside(first, lo, hi uint32) uint64 {
	mask := ^uint64(0)
	if lo > first {
		mask <<= min(lo-first, 64)
	}
	if d := hi - first; d < 64 {
		mask &= 1<<d - 1
	}
	return mask
}

// count returns how many postings have visible slots.
func (b *block) count(visible *slotSet) (n int) {
	if b.width != bitmapWidth {
		return b.countPacked(visible)
	}
	for w := range bitmapWords(b.base, b.last) {
		n += bits.OnesCount64(b.word(w) & visible.word(b.base&^63+uint32(w)<<6))
	}
	return n
}

// countPacked asks for each posting whether it is visible, or, where few slots
// are, for each of those whether it is a posting.
func (b *block) countPacked(visible *slotSet) (n int) {
	if visible.fewer(b.base, b.last, b.n/8) {
		for slot := range visible.within(b.base, b.last) {
			if _, ok := b.find(slot); ok {
				n++
			}
		}
		return n
	}
	for i := range b.n {
		if visible.has(b.packedSlot(i)) {
			n++
		}
	}
	return n
}
