package conformance

import (
	"math"

	"sluice/filter"
	"sluice/index"
	"sluice/index/text"
)

// oracle is the plain model of an index: every document as it was given, every
// score computed anew in float64.
type oracle struct {
	analyzer  text.Analyzer
	documents map[uint32]index.Document
}

func newOracle(analyzer text.Analyzer) *oracle {
	return &oracle{analyzer, map[uint32]index.Document{}}
}

func (o *oracle) apply(b index.Batch) {
	for _, ordinal := range b.Delete {
		delete(o.documents, ordinal)
	}
	for _, d := range b.Put {
		o.documents[d.Ordinal] = d
	}
}

// scored is a row with its exact score.
type scored struct {
	ordinal uint32
	score   float64
}

// each calls visit with every row of every allowed document.
func (o *oracle) each(allowed filter.Set, visit func(ordinal uint32, r index.Row)) {
	for ordinal, d := range o.documents {
		if !allowed.Contains(ordinal) {
			continue
		}
		for _, r := range d.Rows {
			visit(ordinal, r)
		}
	}
}

// dense scores all allowed rows by inner product.
func (o *oracle) dense(allowed filter.Set, vector []float32) map[uint32]scored {
	rows := map[uint32]scored{}
	o.each(allowed, func(ordinal uint32, r index.Row) {
		var dot float64
		for i, x := range r.Vector {
			dot += float64(x) * float64(vector[i])
		}
		rows[r.Row] = scored{ordinal, dot}
	})
	return rows
}

// lexical scores the allowed rows that have a query term by BM25 as it stands
// in the textbook.
func (o *oracle) lexical(allowed filter.Set, query string) map[uint32]scored {
	frequencies, total := map[uint32]map[string]int{}, 0
	lengths, ordinals := map[uint32]int{}, map[uint32]uint32{}
	o.each(allowed, func(ordinal uint32, r index.Row) {
		frequencies[r.Row], ordinals[r.Row] = map[string]int{}, ordinal
		for term := range o.analyzer.Terms(r.Text) {
			frequencies[r.Row][string(term)]++
			lengths[r.Row]++
			total++
		}
	})
	rows, n := map[uint32]scored{}, float64(len(frequencies))
	for term := range o.analyzer.Terms(query) {
		df := 0.0
		for _, f := range frequencies {
			if f[string(term)] > 0 {
				df++
			}
		}
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		for row, f := range frequencies {
			if tf := float64(f[string(term)]); tf > 0 {
				relative := float64(lengths[row]) / (float64(total) / n)
				sum := rows[row].score + idf*tf/(tf+1.2*(1-0.75+0.75*relative))
				rows[row] = scored{ordinals[row], sum}
			}
		}
	}
	return rows
}
