package local

import (
	"math/bits"
	"slices"

	"sluice/kernels/simd"
)

// kernels unpack and score postings; all that there are give the same bits.
var kernels = simd.BestPostings()

// ones are the frequencies of a block in which every posting has 1.
var ones = func() (n simd.PostingNumbers) {
	for i := range n {
		n[i] = 1
	}
	return n
}()

// decoded are the postings of one block.
type decoded struct {
	slots, freqs []uint32 // in what follows, or in ones

	slotRoom, freqRoom simd.PostingNumbers
}

// decode reads all postings. Damage that is not noticed here gives wrong slots,
// so whoever uses them as an index checks them.
func (b *block) decode(dst *decoded) error {
	if b.width != bitmapWidth {
		kernels.Unpack(&dst.slotRoom, b.slots, b.width, b.n, b.base)
	} else if kernels.Expand(&dst.slotRoom, b.slots[:8*bitmapWords(b.base, b.last)], b.base&^63) != b.n {
		return damaged("bitmap of postings")
	}
	dst.slots, dst.freqs = dst.slotRoom[:b.n], ones[:b.n]
	if b.freqWidth > 0 {
		kernels.Unpack(&dst.freqRoom, b.freqs, b.freqWidth, b.n, 1)
		dst.freqs = dst.freqRoom[:b.n]
	}
	return nil
}

// between returns which of the postings have slots in [lo, hi).
func (d *decoded) between(lo, hi uint32) (from, to int) {
	to = len(d.slots)
	if to > 0 && d.slots[0] < lo {
		from, _ = slices.BinarySearch(d.slots, lo)
	}
	if to > 0 && d.slots[to-1] >= hi {
		to, _ = slices.BinarySearch(d.slots, hi)
	}
	return from, max(from, to)
}

// inside are the bits of the slots first…first+63 that lie in [lo, hi).
func inside(first, lo, hi uint32) uint64 {
	mask := ^uint64(0)
	if lo > first {
		mask <<= min(lo-first, 64)
	}
	if hi <= first {
		return 0
	}
	if d := hi - first; d < 64 {
		mask &= 1<<d - 1
	}
	return mask
}

// count returns how many postings have visible slots.
func (b *block) count(d *decoded, visible *slotSet) (n int, err error) {
	if b.width == bitmapWidth {
		for w := range bitmapWords(b.base, b.last) {
			n += bits.OnesCount64(b.word(w) & visible.word(b.base&^63+uint32(w)<<6))
		}
		return n, nil
	}
	if visible.fewer(b.base, b.last, b.n/8) {
		for slot := range visible.within(b.base, b.last) {
			if _, ok := b.find(slot); ok {
				n++
			}
		}
		return n, nil
	}
	if err := b.decode(d); err != nil {
		return 0, err
	}
	for _, slot := range d.slots {
		n += visible.bit(slot)
	}
	return n, nil
}
