package local

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"sluice/index"
	"sluice/index/text"
)

// buildSegment analyses documents into a fresh segment. Those without rows are
// left out; nil if none is left. The vectors must have been checked.
func buildSegment(ctx context.Context, documents []index.Document, dims int, analyzer text.Analyzer) (*segment, error) {
	sorted := withRows(documents)
	if len(sorted) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	w := newSegmentWriter(&out, dims)
	inverted := inverter{ids: map[string]int{}}
	for _, d := range sorted {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, r := range d.Rows {
			w.row(r.Row, inverted.add(w.slots, analyzer, r.Text), r.Vector)
		}
		w.endDocument(d.Ordinal)
	}
	w.endRows()
	inverted.write(w)
	if err := w.finish(); err != nil {
		return nil, err
	}
	return openSegment(out.Bytes())
}

func withRows(documents []index.Document) []index.Document {
	found := slices.DeleteFunc(slices.Clone(documents), func(d index.Document) bool { return len(d.Rows) == 0 })
	slices.SortFunc(found, func(a, b index.Document) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return found
}

// inverter gathers postings by term.
type inverter struct {
	ids   map[string]int
	lists [][]posting
}

// add counts the terms of a slot's text and returns how many there are. Slots ascend.
func (v *inverter) add(slot uint32, analyzer text.Analyzer, body string) (length uint32) {
	for term := range analyzer.Terms(body) {
		length++
		id, ok := v.ids[string(term)]
		if !ok {
			id = len(v.lists)
			v.ids[string(term)] = id
			v.lists = append(v.lists, nil)
		}
		list := v.lists[id]
		if n := len(list); n > 0 && list[n-1].slot == slot {
			list[n-1].freq++
		} else {
			v.lists[id] = append(list, posting{slot, 1})
		}
	}
	return length
}

func (v *inverter) write(w *segmentWriter) {
	for _, term := range slices.Sorted(maps.Keys(v.ids)) {
		w.term([]byte(term), v.lists[v.ids[term]])
	}
}
