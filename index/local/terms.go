package local

import "hash/maphash"

// termTable finds a term's number without searching: numbers plus one by hash,
// at most half full, the next free place where one is taken. It is made when a
// segment is opened, and no part of its file.
type termTable struct {
	seed  maphash.Seed
	slots []uint32 // a power of two; 0: free
}

func newTermTable(s *segment) termTable {
	size := 2
	for size < 2*s.terms() {
		size *= 2
	}
	t := termTable{maphash.MakeSeed(), make([]uint32, size)}
	for i := range s.terms() {
		term, _ := s.term(i)
		at := maphash.Bytes(t.seed, term) & uint64(size-1)
		for t.slots[at] != 0 {
			at = (at + 1) & uint64(size-1)
		}
		t.slots[at] = uint32(i) + 1
	}
	return t
}

// lookup returns the postings of a term; the empty list if there are none.
func (s *segment) lookup(term string) (postingList, error) {
	mask := uint64(len(s.table.slots) - 1)
	for at := maphash.String(s.table.seed, term) & mask; s.table.slots[at] != 0; at = (at + 1) & mask {
		if own, list := s.term(int(s.table.slots[at]) - 1); string(own) == term {
			return list, list.check()
		}
	}
	return postingList{}, nil
}
