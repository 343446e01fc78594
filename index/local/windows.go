package local

import (
	"context"
	"math/bits"
	"slices"

	"sluice/kernels/simd"
)

// windowSlots is how many slots are scored at a time: their sums and lengths
// stay in the first-level cache.
const windowSlots = simd.PostingWindow

// windowMemory is what scoring a part by windows needs.
type windowMemory struct {
	cursors     []cursor
	bounds      []uint32 // by window and cursor: at least what the clause adds to a row there
	starts      []uint32 // by window and cursor: the first block that reaches into the window
	order       []uint64 // windows, the one with the greatest bound first
	blockBounds []uint32 // of one list
	byBound     []uint64 // cursors of a window, the one with the least bound first
	sums        simd.PostingSums
	reached     slotBits
	still       slotBits // slots of a window that may be among the best
}

// slotBits has a bit for each slot of a window.
type slotBits [windowSlots / 64]uint64

// cursor is a clause's place in its list.
type cursor struct {
	list   postingList
	term   simd.Saturation
	at     int // block
	opened int // the block that is open
	block  block

	decoded  int // the block whose postings these are
	postings decoded
	posting  int // of a phrase's term in the block
}

// scoreWindows goes through the part window by window, the most promising
// first, so that the least score that still counts grows fast. In each window
// the clauses that together cannot reach it are set aside (MaxScore: Turtle
// and Flood 1995; with the bounds of blocks: Dimopoulos, Nepomnyachiy and Suel
// 2013). The others' postings are summed up, visible or not, and what is set
// aside is looked up only for visible rows that may still count.
func (s *lexicalSearch) scoreWindows(ctx context.Context, part int) error {
	slots := uint32(s.state.parts[part].seg.rows())
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
		if err := s.scoreWindow(part, int(uint32(w)), lo, min(slots, lo+windowSlots)); err != nil {
			return err
		}
	}
	return nil
}

func (s *lexicalSearch) openCursors(part int) {
	m := &s.windows
	m.cursors = m.cursors[:0]
	for c, weight := range s.weights {
		if list := s.list(part, c).list; list.count > 0 {
			m.cursors = append(m.cursors, cursor{list: list, term: s.model.term(weight), opened: -1, decoded: -1})
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
		m.boundCursor(c, windows)
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
	slices.Sort(m.order)
	slices.Reverse(m.order)
}

func (m *windowMemory) boundCursor(c, windows int) {
	n, list, base := len(m.cursors), m.cursors[c].list, uint32(0)
	m.blockBounds = slices.Grow(m.blockBounds[:0], list.blocks())[:list.blocks()]
	kernels.Bound(m.blockBounds, list.peaks(), m.cursors[c].term)
	for i := range list.blocks() {
		most, last := m.blockBounds[i], list.last(i)
		for w := int(base / windowSlots); w <= int(last/windowSlots) && w < windows; w++ {
			if m.bounds[w*n+c] == 0 {
				m.starts[w*n+c] = uint32(i)
			}
			m.bounds[w*n+c] = max(m.bounds[w*n+c], most)
		}
		base = last + 1
	}
}

// scoreWindow offers the rows of one window that may be among the best.
func (s *lexicalSearch) scoreWindow(part, window int, lo, hi uint32) error {
	m, n := &s.windows, len(s.windows.cursors)
	m.byBound = m.byBound[:0]
	for c, bound := range m.bounds[window*n : (window+1)*n] {
		if bound > 0 {
			m.byBound = append(m.byBound, uint64(bound)<<32|uint64(c))
			m.cursors[c].at = int(m.starts[window*n+c])
		}
	}
	slices.Sort(m.byBound)
	aside, rest := 0, uint32(0) // how many are set aside, and what they add at most
	for aside < len(m.byBound) && rest+uint32(m.byBound[aside]>>32) < s.least {
		rest += uint32(m.byBound[aside] >> 32)
		aside++
	}
	lengths := s.state.parts[part].seg.lengths[lo:hi]
	clear(m.sums[:])
	for _, c := range m.byBound[aside:] {
		if err := m.sumUp(&m.cursors[uint32(c)], lengths, lo); err != nil {
			return err
		}
	}
	m.still = slotBits{}
	for w := range m.still {
		m.still[w] = s.seen(part).word(lo + uint32(w)<<6)
	}
	left := m.keep(s.least, rest)
	for ; aside > 0 && left; aside-- {
		c, bound := uint32(m.byBound[aside-1]), uint32(m.byBound[aside-1]>>32)
		if err := m.complete(&m.cursors[c], lengths, lo); err != nil {
			return err
		}
		rest -= bound
		left = m.keep(s.least, rest)
	}
	s.offerStill(part, lo)
	return nil
}

// keep drops the slots that do not reach the least score even with rest, and
// reports whether any is left.
func (m *windowMemory) keep(least, rest uint32) bool {
	need := uint32(1)
	if least > rest {
		need = least - rest
	}
	kernels.Reach((*[windowSlots / 64]uint64)(&m.reached), &m.sums, need)
	any := uint64(0)
	for w := range m.still {
		m.still[w] &= m.reached[w]
		any |= m.still[w]
	}
	return any != 0
}

// sumUp adds the points of a clause to the rows of the window from lo on.
func (m *windowMemory) sumUp(c *cursor, lengths []uint32, lo uint32) error {
	hi := lo + uint32(len(lengths))
	for ; c.at < c.list.blocks() && c.list.base(c.at) < hi; c.at++ {
		if err := c.decode(); err != nil {
			return err
		}
		from, to := c.postings.between(lo, hi)
		kernels.Score(&m.sums, lengths, c.postings.slots[from:to], c.postings.freqs[from:to], lo, c.term)
	}
	return nil
}

// complete adds the points of a clause to the slots that are still of interest.
func (m *windowMemory) complete(c *cursor, lengths []uint32, lo uint32) error {
	hi := lo + uint32(len(lengths))
	for ; c.at < c.list.blocks() && c.list.base(c.at) < hi; c.at++ {
		from, to := max(lo, c.list.base(c.at)), min(hi-1, c.list.last(c.at))
		if from > to {
			return damaged("posting block header")
		}
		few := m.few(from-lo, to-lo)
		if few == 0 {
			continue
		}
		if err := c.open(); err != nil {
			return err
		}
		switch {
		case c.block.width == bitmapWidth:
			if err := m.completeBitmap(c, lengths, lo); err != nil {
				return err
			}
		case few <= blockPostings/16 && c.decoded != c.at:
			m.completeFew(c, lengths, lo, from, to)
		default:
			if err := m.completeMany(c, lengths, lo); err != nil {
				return err
			}
		}
	}
	return nil
}

// few counts the slots of interest in [from, to], counted from the window's first.
func (m *windowMemory) few(from, to uint32) (n int) {
	for w := from >> 6; w <= to>>6; w++ {
		n += bits.OnesCount64(m.still[w] & inside(w<<6, from, to+1))
	}
	return n
}

func (m *windowMemory) completeBitmap(c *cursor, lengths []uint32, lo uint32) error {
	before, first := 0, c.block.base&^63
	for i := range bitmapWords(c.block.base, c.block.last) {
		word := c.block.word(i)
		count := bits.OnesCount64(word)
		if before+count > c.block.n {
			return damaged("bitmap of postings")
		}
		if w := (first - lo) >> 6; w < uint32(len(m.still)) {
			for rest := word & m.still[w]; rest != 0; rest &= rest - 1 {
				bit := bits.TrailingZeros64(rest)
				at := w<<6 + uint32(bit)
				freq := c.block.freq(before + bits.OnesCount64(word&(1<<bit-1)))
				m.sums[at] += c.term.Points(freq, lengths[at])
			}
		}
		before += count
		first += 64
	}
	return nil
}

func (m *windowMemory) completeFew(c *cursor, lengths []uint32, lo, from, to uint32) {
	from, to = from-lo, to-lo
	for w := from >> 6; w <= to>>6; w++ {
		for rest := m.still[w] & inside(w<<6, from, to+1); rest != 0; rest &= rest - 1 {
			at := w<<6 + uint32(bits.TrailingZeros64(rest))
			if i, ok := c.block.find(lo + at); ok {
				m.sums[at] += c.term.Points(c.block.freq(i), lengths[at])
			}
		}
	}
}

func (m *windowMemory) completeMany(c *cursor, lengths []uint32, lo uint32) error {
	if err := c.decode(); err != nil {
		return err
	}
	for i, slot := range c.postings.slots {
		at := slot - lo
		if at < uint32(len(lengths)) && m.still[at>>6]>>(at&63)&1 != 0 {
			m.sums[at] += c.term.Points(c.postings.freqs[i], lengths[at])
		}
	}
	return nil
}

func (s *lexicalSearch) offerStill(part int, lo uint32) {
	seg, before := s.state.parts[part].seg, s.state.before[part]
	for w, word := range s.windows.still {
		for ; word != 0; word &= word - 1 {
			at := uint32(w<<6 + bits.TrailingZeros64(word))
			s.offer(seg, before, lo+at, s.windows.sums[at])
		}
	}
	s.settle()
}

func (c *cursor) open() error {
	if c.opened == c.at {
		return nil
	}
	c.opened = -1 // until the block is whole
	if err := c.block.open(c.list, c.at); err != nil {
		return err
	}
	c.opened = c.at
	return nil
}

func (c *cursor) decode() error {
	if c.decoded == c.at {
		return nil
	}
	c.decoded = -1
	if err := c.open(); err != nil {
		return err
	}
	if err := c.block.decode(&c.postings); err != nil {
		return err
	}
	c.decoded = c.at
	return nil
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
