package local

import (
	"sluice/filter"
	"sluice/index/local/ivf"
)

// What a segment remembers of the sets it was searched with, in bytes.
const (
	admittedBudgetPerRow = 64
	leastAdmittedBudget  = 1 << 20
)

// admitted is the slots of a segment that a Set admits, deleted or not, and the
// terms that they have.
type admitted struct {
	*ivf.Allowed
	length uint64
}

// admitted returns what the Set admits. Sets are remembered: they are values
// that live as long as no change concerns their principal.
func (s *segment) admitted(set filter.Set) admitted {
	if a, ok := s.sets.Get(set); ok {
		return a
	}
	a := s.admit(set)
	size := a.Size(nil)
	if s.codes != nil {
		size = a.Size(s.codes.index)
	}
	s.sets.Put(set, a, size)
	return a
}

// admit looks the documents up: few as rows, many as bits.
func (s *segment) admit(set filter.Set) (a admitted) {
	if uint64(set.Len()) > uint64(s.documents()/64) {
		words := make([]uint64, (s.rows()+63)/64)
		s.eachShared(set, func(i int, d document) bool {
			setBits(words, d.lo, d.hi)
			a.length += d.length - s.lengthBefore(i)
			return true
		})
		a.Allowed = ivf.NewAllowed(words)
		return a
	}
	rows := make([]uint32, 0, set.Len())
	s.eachShared(set, func(i int, d document) bool {
		for slot := d.lo; slot < d.hi; slot++ {
			rows = append(rows, slot)
		}
		a.length += d.length - s.lengthBefore(i)
		return true
	})
	a.Allowed = ivf.AllowedRows(rows, s.rows())
	return a
}

// fewDocuments is how many times smaller than a set a segment is whose
// documents are looked up in the set, one by one.
const fewDocuments = 8

// eachShared calls visit for the documents of the segment that are in the set,
// with their place in the table, until it returns false.
func (s *segment) eachShared(set filter.Set, visit func(i int, d document) bool) {
	if s.documents()*fewDocuments > set.Len() {
		s.join(set, visit)
		return
	}
	for i := range s.documents() {
		if set.Contains(s.ordinal(i)) && !visit(i, s.document(i)) {
			return
		}
	}
}

// join walks both in order, in time logarithmic in the gaps between what they share.
func (s *segment) join(set filter.Set, visit func(i int, d document) bool) {
	var some [512]uint32
	d, ordinals := 0, set.Many()
	for n := ordinals.NextMany(some[:]); n > 0; n = ordinals.NextMany(some[:]) {
		for _, ordinal := range some[:n] {
			if d = s.seek(d, ordinal); d == s.documents() {
				return
			}
			if s.ordinal(d) != ordinal {
				continue
			}
			if !visit(d, s.document(d)) {
				return
			}
			d++
		}
	}
}

func setBits(words []uint64, lo, hi uint32) {
	for ; lo < hi; lo = lo&^63 + 64 {
		words[lo/64] |= inside(lo&^63, lo, hi)
	}
}

// liveBits returns a bit for each of so many slots, all set.
func liveBits(slots int) []uint64 {
	words := make([]uint64, (slots+63)/64)
	setBits(words, 0, uint32(slots))
	return words
}
