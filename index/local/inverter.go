package local

import (
	"encoding/binary"
	"maps"
	"slices"

	"sluice/index"
	"sluice/index/text"
)

// fieldGap lies between the places of two fields, so that no phrase spans them.
const fieldGap = 100

// inverter gathers postings by term.
type inverter struct {
	analyzer text.Analyzer
	ids      map[string]int
	lists    []openList
}

// openList is the list of one term while it grows.
type openList struct {
	postings []posting
	places   []byte
	next     uint32 // after the last place of the last posting
}

// add takes in the next slot's row and returns its length.
func (v *inverter) add(slot uint32, r index.Row) (length uint32) {
	next := uint32(0)
	for _, field := range []struct {
		text   string
		weight uint32
	}{{r.Title, index.TitleWeight}, {r.Heading, index.HeadingWeight}, {r.Text, index.TextWeight}} {
		start := next
		for at, term := range v.analyzer.Places(field.text) {
			length += field.weight
			place := start + uint32(at)
			v.list(term).add(slot, place, field.weight)
			next = place + fieldGap
		}
	}
	return length
}

func (v *inverter) list(term []byte) *openList {
	id, ok := v.ids[string(term)]
	if !ok {
		id = len(v.lists)
		v.ids[string(term)] = id
		v.lists = append(v.lists, openList{})
	}
	return &v.lists[id]
}

// add counts one more occurrence; slots, and places in one slot, ascend.
func (l *openList) add(slot, place, weight uint32) {
	if n := len(l.postings); n == 0 || l.postings[n-1].slot != slot {
		l.close()
		l.postings = append(l.postings, posting{slot: slot})
	}
	l.postings[len(l.postings)-1].freq += weight
	l.places = binary.AppendUvarint(l.places, uint64(place-l.next)+1)
	l.next = place + 1
}

// close ends the places of the last posting.
func (l *openList) close() {
	if len(l.postings) > 0 {
		l.places, l.next = append(l.places, 0), 0
	}
}

func (v *inverter) write(w *segmentWriter) {
	for _, term := range slices.Sorted(maps.Keys(v.ids)) {
		list := &v.lists[v.ids[term]]
		list.close()
		w.term([]byte(term), list.postings, list.places)
	}
}
