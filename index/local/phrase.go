package local

import (
	"context"
	"math/bits"
	"slices"
	"strings"

	"sluice/index/text"
)

// phraseMemory is what building the list of a phrase or a prefix needs.
type phraseMemory struct {
	cursors       []cursor
	starts, other []uint32 // places
	found         []posting
	bits          []uint64 // slots touched; all zero between uses
}

// builtList encodes the postings found as a list like any other.
func (s *lexicalSearch) builtList(part int) postingList {
	start := len(s.built)
	s.built = appendList(s.built, s.phrase.found, nil, s.state.parts[part].seg.lengths)
	end := len(s.built)
	s.built = append(s.built, make([]byte, slack)...)
	return postingList{uint32(len(s.phrase.found)), s.built[start:end]}
}

// phraseList builds the list of the visible rows that have the terms at their
// distances; the frequency is how often, whatever the field.
func (s *lexicalSearch) phraseList(ctx context.Context, part int, c text.Clause) (postingList, error) {
	m := &s.phrase
	m.cursors, m.found = m.cursors[:0], m.found[:0]
	rarest := 0
	for i, term := range c.Terms {
		list, err := s.state.parts[part].seg.lookup(term)
		if err != nil || list.count == 0 {
			return postingList{}, err
		}
		m.cursors = append(m.cursors, cursor{list: list, opened: -1})
		if list.count < m.cursors[rarest].list.count {
			rarest = i
		}
	}
	lead := m.cursors[rarest].list
	var b block
	for i := range lead.blocks() {
		if err := ctx.Err(); err != nil {
			return postingList{}, err
		}
		if err := b.open(lead, i); err != nil {
			return postingList{}, err
		}
		if err := b.decode(&s.decoded); err != nil {
			return postingList{}, err
		}
		for _, slot := range s.decoded.slots {
			if !s.seen(part).has(slot) {
				continue
			}
			freq, err := m.occurrences(slot, c.Offsets)
			if err != nil {
				return postingList{}, err
			}
			if freq > 0 {
				m.found = append(m.found, posting{slot, freq})
			}
		}
	}
	return s.builtList(part), nil
}

// occurrences counts the phrase in one row.
func (m *phraseMemory) occurrences(slot uint32, offsets []uint32) (uint32, error) {
	for i := range m.cursors {
		at, ok, err := m.cursors[i].seek(slot)
		if !ok || err != nil {
			return 0, err
		}
		m.cursors[i].posting = at
	}
	for i := range m.cursors {
		if err := m.narrow(&m.cursors[i], i == 0, offsets[i]); err != nil || len(m.starts) == 0 {
			return 0, err
		}
	}
	return uint32(len(m.starts)), nil
}

// narrow keeps the places at which the phrase can begin given one term's.
func (m *phraseMemory) narrow(c *cursor, first bool, offset uint32) error {
	all, err := c.list.places(c.at)
	if err != nil {
		return err
	}
	encoded, err := place(all, c.posting)
	if err != nil {
		return err
	}
	if first {
		m.starts, err = appendPlaces(m.starts[:0], encoded)
		return err
	}
	m.other, err = appendPlaces(m.other[:0], encoded)
	m.starts = slices.DeleteFunc(m.starts, func(start uint32) bool {
		_, there := slices.BinarySearch(m.other, start+offset)
		return !there
	})
	return err
}

// prefixList builds the list of the rows that have any of the clause's terms,
// or one that begins with its prefix; frequencies are added up. There is no
// limit to how many terms that are: one would let terms of rows that are not
// visible decide which count.
func (s *lexicalSearch) prefixList(ctx context.Context, part int, c text.Clause) (postingList, error) {
	seg := s.state.parts[part].seg
	for i := seg.seekTerm(c.Prefix); i < seg.terms(); i++ {
		term, list := seg.term(i)
		if !strings.HasPrefix(string(term), c.Prefix) {
			break
		}
		if err := s.addList(ctx, part, list); err != nil {
			return postingList{}, err
		}
	}
	for _, term := range c.Terms {
		if strings.HasPrefix(term, c.Prefix) {
			continue // it was among them
		}
		list, err := seg.lookup(term)
		if err == nil {
			err = s.addList(ctx, part, list)
		}
		if err != nil {
			return postingList{}, err
		}
	}
	s.takeSums(seg.rows())
	return s.builtList(part), nil
}

// addList adds the frequencies of a list to the sums by slot.
func (s *lexicalSearch) addList(ctx context.Context, part int, list postingList) error {
	if err := list.check(); err != nil {
		return err
	}
	rows := s.state.parts[part].seg.rows()
	sums := s.zeroSums(rows)
	if words := (rows + 63) / 64; len(s.phrase.bits) < words {
		s.phrase.bits = make([]uint64, words)
	}
	var b block
	for i := range list.blocks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.open(list, i); err != nil {
			return err
		}
		if err := b.decode(&s.decoded); err != nil {
			return err
		}
		for j, slot := range s.decoded.slots {
			if int(slot) >= rows {
				return damaged("posting")
			}
			if !s.seen(part).has(slot) {
				continue
			}
			sums[slot] += s.decoded.freqs[j]
			s.phrase.bits[slot>>6] |= 1 << (slot & 63)
		}
	}
	return nil
}

// takeSums makes the sums postings and clears them.
func (s *lexicalSearch) takeSums(rows int) {
	m, sums := &s.phrase, s.zeroSums(rows)
	m.found = m.found[:0]
	for w, word := range m.bits {
		for ; word != 0; word &= word - 1 {
			slot := uint32(w<<6 + bits.TrailingZeros64(word))
			m.found = append(m.found, posting{slot, sums[slot]})
			sums[slot] = 0
		}
		m.bits[w] = 0
	}
}
