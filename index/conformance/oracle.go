package conformance

import (
	"math"
	"slices"
	"strings"

	"sluice/filter"
	"sluice/index"
	"sluice/index/text"
)

// oracle is the plain model of an index: every document as it was given, every
// score computed anew in float64.
type oracle struct {
	analyzer  text.Analyzer
	documents map[uint32]index.Document
	analysed  map[uint32]fields // by row, whose number is never used again
}

func newOracle(analyzer text.Analyzer) *oracle {
	return &oracle{analyzer, map[uint32]index.Document{}, map[uint32]fields{}}
}

func (o *oracle) apply(b index.Batch) {
	for _, ordinal := range b.Delete {
		delete(o.documents, ordinal)
	}
	for _, d := range b.Put {
		o.documents[d.Ordinal] = d
		for _, r := range d.Rows {
			o.analysed[r.Row] = o.fields(r)
		}
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

// lexical scores the allowed rows that have a clause of the query by BM25 as it
// stands in the textbook.
func (o *oracle) lexical(allowed filter.Set, query string) map[uint32]scored {
	all, total, n := map[uint32]fields{}, 0.0, 0.0
	ordinals := map[uint32]uint32{}
	o.each(allowed, func(ordinal uint32, r index.Row) {
		all[r.Row], ordinals[r.Row] = o.analysed[r.Row], ordinal
		total += all[r.Row].length()
		n++
	})
	rows := map[uint32]scored{}
	for _, c := range o.analyzer.Parse(query) {
		df := 0.0
		for _, f := range all {
			if f.frequency(c) > 0 {
				df++
			}
		}
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		for row, f := range all {
			if tf := f.frequency(c); tf > 0 {
				relative := f.length() / (total / n)
				sum := rows[row].score + float64(c.Weight)*idf*tf/(tf+1.2*(1-0.75+0.75*relative))
				rows[row] = scored{ordinals[row], sum}
			}
		}
	}
	return rows
}

// fields are the terms of a row's fields by position; "" where there is none.
type fields [3][]string

var fieldWeights = [3]float64{index.TitleWeight, index.HeadingWeight, index.TextWeight}

func (o *oracle) fields(r index.Row) (f fields) {
	for i, body := range [3]string{r.Title, r.Heading, r.Text} {
		for at, term := range o.analyzer.Places(body) {
			for len(f[i]) < at {
				f[i] = append(f[i], "")
			}
			f[i] = append(f[i], string(term))
		}
	}
	return f
}

func (f fields) length() (sum float64) {
	for i, terms := range f {
		for _, term := range terms {
			if term != "" {
				sum += fieldWeights[i]
			}
		}
	}
	return sum
}

// frequency is how often a row has the clause: terms by the weight of their field.
func (f fields) frequency(c text.Clause) (sum float64) {
	for i, terms := range f {
		for at := range terms {
			switch {
			case fieldWeights[i] == 0:
			case c.Kind == text.Phrase && hasPhrase(terms, at, c):
				sum++
			case c.Kind != text.Phrase && terms[at] != "" && hasTerm(terms[at], c):
				sum += fieldWeights[i]
			}
		}
	}
	return sum
}

func hasPhrase(terms []string, at int, c text.Clause) bool {
	for i, term := range c.Terms {
		if next := at + int(c.Offsets[i]); next >= len(terms) || terms[next] != term {
			return false
		}
	}
	return true
}

func hasTerm(term string, c text.Clause) bool {
	return slices.Contains(c.Terms, term) || c.Kind == text.Prefix && strings.HasPrefix(term, c.Prefix)
}
