package pdf

import (
	"math"
	"slices"
	"strings"

	"sluice/document"
)

// Pages are drawn cell by cell, as a rule: all lines of a cell, then the cell to
// its right, then the row below. Where columns touch and all cells are of several
// lines, only this order tells cells and rows.

// cell is what stands in one place of a table, in the order in which it was drawn.
type cell struct {
	runs []run
	box  document.Box
	last document.Box // its last line
	size float64
}

func newCell(r run) *cell { return &cell{runs: []run{r}, box: r.box, last: r.box, size: r.size} }

func (c *cell) add(r run) {
	if sharedHeight(c.last, r.box) >= 0.5 {
		c.last = union(c.last, r.box)
	} else {
		c.last = r.box
	}
	c.runs, c.box = append(c.runs, r), union(c.box, r.box)
}

// takes says whether a run that is drawn next goes on with the cell: close behind
// its last line, or as the next line with an end or the middle at the same place.
func (c *cell) takes(r run, starts []float64) bool {
	size := max(c.size, r.size)
	if sharedHeight(c.last, r.box) >= 0.5 {
		gap := r.box.Left - c.last.Right
		return gap > -0.3*size && gap < 0.6*size && !startsAt(starts, r.box.Left)
	}
	down := middle(r.box) - middle(c.last)
	return 0 < down && down < 1.8*size && (abs(r.box.Left-c.box.Left) < sameEdge || abs(centre(r.box)-centre(c.box)) < sameEdge || abs(r.box.Right-c.box.Right) < sameEdge)
}

const sameEdge = 2.0 // points between the ends of lines that are aligned

func startsAt(starts []float64, x float64) bool {
	return slices.ContainsFunc(starts, func(s float64) bool { return abs(s-x) < 1 })
}

// drawnRows puts runs into rows of cells by the order in which they were drawn: a
// row begins with a cell to the left of the last one and below all of its row.
func drawnRows(runs []run) [][]*cell {
	starts := columnStarts(runs)
	var rows [][]*cell
	var at *cell
	bottom := math.Inf(-1)
	for _, r := range splitAt(runs, starts) {
		if at != nil && at.takes(r, starts) {
			at.add(r)
			bottom = max(bottom, r.box.Bottom)
			continue
		}
		if at == nil || r.box.Left < at.box.Right && middle(r.box) > bottom {
			rows, bottom = append(rows, nil), r.box.Bottom
		}
		at = newCell(r)
		rows[len(rows)-1] = append(rows[len(rows)-1], at)
		bottom = max(bottom, r.box.Bottom)
	}
	return rows
}

// columnStarts are the left ends that several lines have.
func columnStarts(runs []run) []float64 {
	var lefts []float64
	for _, r := range runs {
		lefts = append(lefts, r.box.Left)
	}
	slices.Sort(lefts)
	var starts []float64
	for from, i := 0, 1; i <= len(lefts); i++ {
		if i < len(lefts) && lefts[i]-lefts[i-1] < 0.6 {
			continue
		}
		if i-from >= leastStarts {
			starts = append(starts, lefts[(from+i)/2])
		}
		from = i
	}
	return starts
}

const leastStarts = 3 // lines that begin at the same place, where a column does

// splitAt parts runs where a letter stands at the start of a column and follows
// the one before it without a space.
func splitAt(runs []run, starts []float64) []run {
	var out []run
	for _, r := range runs {
		from := 0
		for i := 1; i < len(r.chars); i++ {
			c := r.chars[i]
			if !c.isBlank() && startsAt(starts, c.box.Left) && !blankBefore(r.chars[:i]) {
				out = append(out, r.part(from, i))
				from = i
			}
		}
		if from == 0 {
			out = append(out, r)
		} else {
			out = append(out, r.part(from, len(r.chars)))
		}
	}
	return out
}

func blankBefore(chars []char) bool { return chars[len(chars)-1].isBlank() }

// part is a run of some of the characters of a run.
func (r run) part(from, to int) run {
	r.chars = r.chars[from:to]
	r.text, r.box = textOfChars(r.chars)
	return r
}

// columnsOfRows are the columns of rows: those of the rows that have the number
// of cells which the header has, if some rows have it, else most rows.
func columnsOfRows(rows [][]*cell) []column {
	counts := map[int]int{}
	for _, row := range rows {
		counts[len(row)]++
	}
	n := len(rows[0])
	if 4*counts[n] < len(rows) {
		for k, times := range counts {
			if times > counts[n] || times == counts[n] && k > n {
				n = k
			}
		}
	}
	columns := make([]column, n)
	for j := range columns {
		var lefts, rights []float64
		for _, row := range rows {
			if len(row) == n {
				lefts, rights = append(lefts, row[j].box.Left), append(rights, row[j].box.Right)
			}
		}
		columns[j] = column{median(lefts), slices.Max(rights)}
	}
	return columns
}

// column is where the cells of a column stand.
type column struct{ left, right float64 }

func (c column) centre() float64 { return (c.left + c.right) / 2 }

// far is how far a box is from being aligned with a column.
func (c column) far(b document.Box) float64 {
	return min(abs(b.Left-c.left), abs(centre(b)-c.centre()), abs(b.Right-c.right))
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// placed finds the columns of the cells of a row, from left to right: each its
// own where there are enough, at the least distance together.
func placed(row []*cell, columns []column) []int {
	places := make([]int, len(row))
	if len(row) == len(columns) {
		for i := range places {
			places[i] = i
		}
		return places
	}
	step := 1
	if len(row) > len(columns) {
		step = 0
	}
	best := make([][]float64, len(row)+1)
	from := make([][]int, len(row)+1)
	for i := range best {
		best[i], from[i] = make([]float64, len(columns)), make([]int, len(columns))
	}
	for i, c := range row {
		for j := range columns {
			best[i+1][j] = math.Inf(1)
			for k := -1; k <= j-step; k++ {
				if k < 0 && i > 0 {
					continue
				}
				before := 0.0
				if i > 0 {
					before = best[i][k]
				}
				if d := before + columns[j].far(c.box); d < best[i+1][j] {
					best[i+1][j], from[i+1][j] = d, k
				}
				if i == 0 {
					break
				}
			}
		}
	}
	at := 0
	for j := range columns {
		if best[len(row)][j] < best[len(row)][at] {
			at = j
		}
	}
	for i := len(row); i > 0; i-- {
		places[i-1] = at
		at = from[i][at]
	}
	return places
}

func (c *cell) text() string { return strings.TrimSpace(textOf(c.runs)) }
