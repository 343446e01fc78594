package fidelity

import (
	"errors"
	"fmt"
	"strings"
)

// Table is the cells of a table, row by row. A cell that spans several places is
// repeated in each.
type Table [][]string

// maxNodes bounds the nodes of a table: time grows with the product of two.
const maxNodes = 3000

// ErrTooLarge means that a table or text is beyond what is compared.
var ErrTooLarge = errors.New("too large to be compared")

// TEDS is the similarity of two tables by the edit distance of their trees, from
// 0 to 1 (Zhong, ShafieiBavani, Jimeno Yepes: Image-based table recognition, ECCV
// 2020): 1 − distance / nodes of the larger one. The tree is table → rows →
// cells. Inserting or deleting a node costs 1, changing the text of a cell the
// edit distance of both texts over the length of the longer one, in code points,
// white space as one space. Where that paper compares spans, spans are repeated
// cells here; header rows are rows. A table without cells is none; two of these
// are alike. It fails with ErrTooLarge.
func TEDS(a, b Table) (float64, error) {
	x, y := a.tree(), b.tree()
	size := max(len(x.nodes), len(y.nodes))
	switch {
	case size > maxNodes:
		return 0, fmt.Errorf("%w: a table of %d rows and cells, the most is %d", ErrTooLarge, size, maxNodes)
	case len(x.nodes) == 1 && len(y.nodes) == 1:
		return 1, nil
	case len(x.nodes) == 1 || len(y.nodes) == 1:
		return 0, nil
	}
	return 1 - distance(x, y, renaming(x, y))/float64(size), nil
}

func (t Table) tree() *flat {
	root := &node{}
	for _, cells := range t {
		row := &node{}
		for _, cell := range cells {
			row.children = append(row.children, &node{text: strings.Join(strings.Fields(cell), " ")})
		}
		root.children = append(root.children, row)
	}
	return flatten(root)
}

// renaming costs: each pair is compared once. A node becomes none of another
// level, but is deleted and inserted.
func renaming(a, b *flat) func(i, j int) float64 {
	known := map[[2]string]float64{}
	return func(i, j int) float64 {
		x, y := a.nodes[i].text, b.nodes[j].text
		switch {
		case a.depth[i] != b.depth[j]:
			return 2
		case x == y:
			return 0
		case x == "" || y == "":
			return 1
		}
		cost, ok := known[[2]string{x, y}]
		if !ok {
			cost = textDistance([]rune(x), []rune(y))
			known[[2]string{x, y}] = cost
		}
		return cost
	}
}

// textDistance is Levenshtein's over the length of the longer text.
func textDistance(a, b []rune) float64 {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := diagonal
			if x != y {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return float64(row[len(b)]) / float64(max(len(a), len(b), 1))
}

// tables is the mean TEDS of the tables, in the pairing that keeps both orders
// and has the greatest sum; a table without partner, wanted or found, counts 0.
func tables(want, got []Table) (float64, error) {
	sums := matrix(len(want)+1, len(got)+1)
	for i, a := range want {
		for j, b := range got {
			similar, err := TEDS(a, b)
			if err != nil {
				return 0, err
			}
			sums[i+1][j+1] = max(sums[i][j+1], sums[i+1][j], sums[i][j]+similar)
		}
	}
	return sums[len(want)][len(got)] / float64(max(len(want), len(got))), nil
}
