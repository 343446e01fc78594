package local

import (
	"slices"

	"sluice/filter"
	"sluice/index/local/ivf"
)

// scratch is the memory of one query, used again by the next.
type scratch struct {
	allowed    []uint32    // ordinals, ascending
	selections []selection // by part
	lexical    lexicalMemory

	query ivf.Query
	near  ivf.Scratch
}

// choose fills the selections and returns rows and terms over all of them.
func (s *scratch) choose(parts []part, allowed filter.Set) (rows, length uint64) {
	s.allowed = s.allowed[:0]
	for ordinal := range allowed.Each {
		s.allowed = append(s.allowed, ordinal)
	}
	s.selections = slices.Grow(s.selections[:0], len(parts))[:len(parts)]
	for i, p := range parts {
		s.selections[i].choose(p, s.allowed)
		rows += s.selections[i].rows
		length += s.selections[i].length
	}
	return rows, length
}
