package local

import (
	"bytes"
	"cmp"
	"context"
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
	inverted := inverter{analyzer: analyzer, ids: map[string]int{}}
	for _, d := range sorted {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, r := range d.Rows {
			w.row(r.Row, inverted.add(w.slots, r), r.Vector)
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
