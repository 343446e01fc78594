// Package fidelity measures how much of a document its parser reads: words,
// tables, captions and their order, beside a golden reading of the same document.
package fidelity

import (
	"slices"

	"sluice/document"
)

// Reading is what is compared of a document.
type Reading struct {
	Text     string
	Blocks   []string // texts in reading order
	Tables   []Table
	Captions []string
}

// Weights of the parts of a document's fidelity, as EnterpriseDocBench has them
// (arXiv:2604.26382). A part that neither reading has leaves its weight to the
// others.
var Weights = struct{ Text, Tables, Captions, Order float64 }{0.40, 0.30, 0.15, 0.15}

// Scores of one document, from 0 to 1. Nil: neither reading has any.
type Scores struct {
	Text     float64  `json:"text"`
	Tables   *float64 `json:"tables,omitempty"`
	Captions *float64 `json:"captions,omitempty"`
	Order    *float64 `json:"order,omitempty"`
	Whole    float64  `json:"whole"`
	Words    int      `json:"words"` // of the golden reading
}

// Of is the reading of a parsed document.
func Of(d document.Document) Reading {
	r := Reading{Text: d.Text}
	r.add(d.Text, d.Blocks)
	return r
}

func (r *Reading) add(text string, blocks []*document.Block) {
	for _, b := range blocks {
		switch {
		case b.Grid != nil:
			r.Tables = append(r.Tables, tableOf(b.Grid))
		case b.Kind == document.Caption:
			r.Captions = append(r.Captions, text[b.Start:b.End])
		case len(b.Children) == 0:
			r.Blocks = append(r.Blocks, text[b.Start:b.End])
		}
		r.add(text, b.Children)
	}
}

func tableOf(g *document.Grid) Table {
	var t Table
	for _, row := range g.Rows {
		t = append(t, slices.Clone(row.Cells))
	}
	return t
}

// Compare scores a reading beside the golden one. It fails with ErrTooLarge.
func Compare(want, got Reading) (Scores, error) {
	wanted, read := wordsOf(want.Text), wordsOf(got.Text)
	text, err := integrity(wanted, read)
	if err != nil {
		return Scores{}, err
	}
	s := Scores{Text: text, Words: len(wanted)}
	if len(want.Tables)+len(got.Tables) > 0 {
		similar, err := tables(want.Tables, got.Tables)
		if err != nil {
			return Scores{}, err
		}
		s.Tables = &similar
	}
	if len(want.Captions)+len(got.Captions) > 0 {
		f1 := captions(want.Captions, got.Captions)
		s.Captions = &f1
	}
	if share, known := order(want.Blocks, wanted, read); known {
		s.Order = &share
	}
	s.Whole = s.weigh()
	return s, nil
}

func (s Scores) weigh() float64 {
	sum, weights := Weights.Text*s.Text, Weights.Text
	for part, weight := range map[*float64]float64{s.Tables: Weights.Tables, s.Captions: Weights.Captions, s.Order: Weights.Order} {
		if part != nil {
			sum, weights = sum+weight**part, weights+weight
		}
	}
	return sum / weights
}
