package local

import (
	"bytes"
	"fmt"
	"math"
)

// checkPostings verifies that terms ascend, that every list decodes to as many
// postings as it says, with places for each and peaks that bound them, and that
// the frequencies add up to the rows' lengths.
func checkPostings(s *segment) error {
	lengths := make([]uint32, s.rows())
	var before []byte
	for i := range s.terms() {
		term, list := s.term(i)
		if i > 0 && bytes.Compare(before, term) >= 0 {
			return damaged("term %q is out of order", term)
		}
		if list.count == 0 {
			return damaged("term %q has no postings", term)
		}
		if err := checkList(s, list, lengths); err != nil {
			return fmt.Errorf("term %q: %w", term, err)
		}
		before = term
	}
	for slot, length := range lengths {
		if length != s.length(uint32(slot)) {
			return damaged("row %d has %d terms, its length is %d", s.row(uint32(slot)), length, s.length(uint32(slot)))
		}
	}
	return nil
}

// checkList verifies one list and adds its frequencies to the lengths.
func checkList(s *segment, list postingList, lengths []uint32) error {
	if err := list.check(); err != nil {
		return err
	}
	var b block
	var d decoded
	for i := range list.blocks() {
		if err := b.open(list, i); err != nil {
			return err
		}
		if err := b.decode(&d); err != nil {
			return err
		}
		if d.slots[0] < b.base || d.slots[b.n-1] != b.last || int(b.last) >= s.rows() {
			return damaged("slots of a posting block")
		}
		for j := range b.n {
			if j > 0 && d.slots[j] <= d.slots[j-1] {
				return damaged("postings out of order")
			}
			lengths[d.slots[j]] += d.freqs[j]
			if !bounded(list.peaks()[i*peaksSize:], d.freqs[j], s.length(d.slots[j])) {
				return damaged("peaks of a block")
			}
		}
		if err := checkPlaces(list, i, b.n); err != nil {
			return err
		}
	}
	if end := list.bodies() + int(list.bodyEnd(list.blocks()-1)) + int(list.placesEnd(list.blocks()-1)); end != len(list.data) {
		return damaged("bytes after the last places")
	}
	return nil
}

// bounded reports whether a peak stands for the posting.
func bounded(peaks []byte, freq, length uint32) bool {
	for i := range blockPeaks {
		p := peakAt(peaks, i)
		if (p.freq >= freq || p.freq == math.MaxUint16) && p.length <= length {
			return true
		}
	}
	return false
}

func checkPlaces(list postingList, i, n int) error {
	places, err := list.places(i)
	if err != nil {
		return err
	}
	for range n {
		end := bytes.IndexByte(places, 0)
		if end < 1 {
			return damaged("places end early")
		}
		if _, err := appendPlaces(nil, places[:end]); err != nil {
			return err
		}
		places = places[end+1:]
	}
	if len(places) > 0 {
		return damaged("places of no posting")
	}
	return nil
}
