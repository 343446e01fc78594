package local

import (
	"context"
	"math/bits"
	"slices"
)

// windowSlots is how many slots are scored at a time: their sums, bits and
// lengths stay in the first-level cache.
const windowSlots = 4096

// windowMemory is what scoring a part by windows needs.
type windowMemory struct {
	cursors []cursor
	bounds  []uint32 // by window and cursor: at least what the clause adds to a row there
	starts  []uint32 // by window and cursor: the first block that reaches into the window
	order   []uint64 // windows, the one with the greatest bound first
	byBound []uint64 // cursors of a window, the one with the least bound first
	sums    [windowSlots]uint32
	touched [windowSlots / 64]uint64
}

// cursor is a clause's place in its list.
type cursor struct {
	list   postingList
	weight float64
	at     int // block
	opened int // the block that is open
	block  block

	posting int // of a phrase's term in the block
}

// scoreWindows goes through the part window by window, the most promising
// first, so that the least score that still counts grows fast. In each window
// the clauses that together cannot reach it are set aside (MaxScore: Turtle
// and Flood 1995; with the bounds of blocks: Dimopoulos, Nepomnyachiy and Suel
// 2013); the others' postings are summed up, and what is set aside is looked
// up only for rows that may still count.
func (s *lexicalSearch) scoreWindows(ctx context.Context, part int) error {
	slots := uint32(s.parts[part].seg.rows())
	s.openCursors(part)
	s.boundWindows(int((slots + windowSlots - 1) / windowSlots))
	for _, w := range s.windows.order {
		if uint32(w>>32) < s.least {
			return nil // and so are all that follow
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		lo := uint32(w) * windowSlots
		if err := s.scoreWindow(part, uint32(w), lo, min(slots, lo+windowSlots)); err != nil {
			return err
		}
	}
	return nil
}

func (s *lexicalSearch) openCursors(part int) {
	s.windows.cursors = s.windows.cursors[:0]
	for c, weight := range s.weights {
		if list := s.list(part, c).list; list.count > 0 {
			s.windows.cursors = append(s.windows.cursors, cursor{list: list, weight: weight, opened: -1})
		}
	}
}

// boundWindows bounds the scores of every window.
func (s *lexicalSearch) boundWindows(windows int) {
	m, n := &s.windows, len(s.windows.cursors)
	m.bounds = slices.Grow(m.bounds[:0], windows*n)[:windows*n]
	m.starts = slices.Grow(m.starts[:0], windows*n)[:windows*n]
	clear(m.bounds)
	for c := range m.cursors {
		s.boundCursor(c, windows)
	}
	m.order = m.order[:0]
	for w := range windows {
		sum := uint64(0)
		for _, bound := range m.bounds[w*n : (w+1)*n] {
			sum += uint64(bound)
		}
		if sum > 0 {
			m.order = append(m.order, sum<<32|uint64(w))
		}
	}
	slices.SortFunc(m.order, func(a, b uint64) int { // descending
		if a > b {
			return -1
		}
		return 1
	})
}

func (s *lexicalSearch) boundCursor(c, windows int) {
	m, n := &s.windows, len(s.windows.cursors)
	list, weight, base := m.cursors[c].list, m.cursors[c].weight, uint32(0)
	for i := range list.blocks() {
		header := list.header(i)
		last := list.last(i)
		bound := s.model.bound(weight, header)
		for w := int(base / windowSlots); w <= int(last/windowSlots) && w < windows; w++ {
			if m.bounds[w*n+c] == 0 {
				m.starts[w*n+c] = uint32(i)
			}
			m.bounds[w*n+c] = max(m.bounds[w*n+c], bound)
		}
		base = last + 1
	}
}

// scoreWindow offers the rows of one window that may be among the best.
func (s *lexicalSearch) scoreWindow(part int, window, lo, hi uint32) error {
	m, n := &s.windows, len(s.windows.cursors)
	bounds := m.bounds[int(window)*n : (int(window)+1)*n]
	m.byBound = m.byBound[:0]
	for c, bound := range bounds {
		if bound > 0 {
			m.byBound = append(m.byBound, uint64(bound)<<32|uint64(c))
			m.cursors[c].at = int(m.starts[int(window)*n+c])
		}
	}
	slices.Sort(m.byBound)
	aside, rest := 0, uint32(0) // how many are set aside, and what they add at most
	for aside < len(m.byBound) && rest+uint32(m.byBound[aside]>>32) < s.least {
		rest += uint32(m.byBound[aside] >> 32)
		aside++
	}
	for _, c := range m.byBound[aside:] {
		if err := s.sumUp(part, &m.cursors[uint32(c)], lo, hi); err != nil {
			return err
		}
	}
	return s.offerTouched(part, lo, m.byBound[:aside], rest)
}

// sumUp adds the points of a clause to every visible row of a window.
func (s *lexicalSearch) sumUp(part int, c *cursor, lo, hi uint32) error {
	lengths, visible := s.parts[part].seg.lengths, s.seen(part)
	sums, touched := &s.windows.sums, &s.windows.touched
	for ; c.at < c.list.blocks() && c.list.base(c.at) < hi; c.at++ {
		if err := c.open(); err != nil {
			return err
		}
		n := c.block.decode(&s.decoded, lo, hi, visible)
		slots, freqs := s.decoded.slots[:n], s.decoded.freqs[:n]
		for i, slot := range slots {
			at := slot - lo
			if at >= windowSlots {
				return damaged("posting outside its block")
			}
			sums[at] += s.model.points(c.weight, freqs[i], lengths[slot])
			touched[at>>6] |= 1 << (at & 63)
		}
	}
	return nil
}

func (c *cursor) open() error {
	if c.opened == c.at {
		return nil
	}
	c.opened = c.at
	return c.block.open(c.list, c.at)
}

// offerTouched completes the sums that may be among the best with the clauses
// that were set aside, which add at most rest, and clears all sums.
func (s *lexicalSearch) offerTouched(part int, lo uint32, aside []uint64, rest uint32) (err error) {
	m := &s.windows
	for w := range m.touched {
		word := m.touched[w]
		if word == 0 {
			continue
		}
		m.touched[w] = 0
		for ; word != 0; word &= word - 1 {
			at := w<<6 + bits.TrailingZeros64(word)
			sum := m.sums[at]
			m.sums[at] = 0
			if sum+rest < s.least {
				continue
			}
			if sum, err = s.complete(part, lo+uint32(at), sum, aside, rest); err != nil {
				return err
			}
			s.offer(part, lo+uint32(at), sum)
		}
	}
	return nil
}

// complete adds to a row's sum what the clauses set aside have in it, the
// greatest bound first, and ends early if the sum cannot count any more.
func (s *lexicalSearch) complete(part int, slot, sum uint32, aside []uint64, rest uint32) (uint32, error) {
	for i := len(aside) - 1; i >= 0 && sum+rest >= s.least; i-- {
		c := &s.windows.cursors[uint32(aside[i])]
		rest -= uint32(aside[i] >> 32)
		at, ok, err := c.seek(slot)
		if err != nil {
			return 0, err
		}
		if ok {
			sum += s.model.points(c.weight, c.block.freq(at), s.parts[part].seg.lengths[slot])
		}
	}
	return sum, nil
}

// seek goes on to the slot and returns which posting of the open block is its.
func (c *cursor) seek(slot uint32) (at int, ok bool, err error) {
	if c.at = c.list.skipTo(c.at, slot); c.at == c.list.blocks() {
		return 0, false, nil
	}
	if err := c.open(); err != nil {
		return 0, false, err
	}
	at, ok = c.block.find(slot)
	return at, ok, nil
}
