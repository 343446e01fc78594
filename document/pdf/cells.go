package pdf

import (
	"math"
	"slices"
	"strings"
	"unicode"

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
func (c *cell) takes(r run, starts []column) bool {
	size := max(c.size, r.size)
	if sharedHeight(c.last, r.box) >= 0.5 {
		gap := r.box.Left - c.last.Right
		return gap > -0.3*size && gap < 0.6*size && !startsAt(starts, r.box.Left)
	}
	down := middle(r.box) - middle(c.last)
	return 0 < down && down < 1.8*size && column{c.box.Left, c.box.Right}.far(column{r.box.Left, r.box.Right}) < sameEdge
}

const sameEdge = 3.0 // points between the ends of lines that are aligned, as far as marks hang out

// drawnRows puts runs into rows of cells by the order in which they were drawn: a
// row begins with a cell to the left of the last one and below all of its row.
func drawnRows(runs []run, starts []column) [][]*cell {
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

const (
	startLines   = 3   // that begin at the same place, where a column does
	startWidths  = 2.0 // between the widths of two of them: no middle or right end is what they have in common
	bearing      = 0.6 // between the left ends of letters that begin at the same place
	leastBearing = 0.2 // of a letter that stands out to the left of the others; to the right 1.5 times
)

// columnStarts are the places where lines of cells begin, from the left, by the
// left ends of their letters.
func columnStarts(w *work, regions []region) []column {
	var lines []document.Box
	for _, r := range regions {
		for _, c := range slices.Concat(r.rows(w, nil)...) {
			lines = append(lines, c.lines()...)
		}
	}
	sortBy(w, lines, func(a, b document.Box) int { return compare(a.Left, b.Left) })
	var starts []column
	for from, i := 0, 1; i <= len(lines); i++ {
		if i < len(lines) && lines[i].Left-lines[i-1].Left < bearing {
			continue
		}
		if i-from >= startLines && widthsDiffer(lines[from:i]) {
			starts = append(starts, column{lines[from].Left - leastBearing, lines[i-1].Left + 1.5*leastBearing})
		}
		from = i
	}
	return starts
}

func widthsDiffer(lines []document.Box) bool {
	return slices.ContainsFunc(lines, func(l document.Box) bool { return abs(width(l)-width(lines[0])) > startWidths })
}

func startsAt(starts []column, x float64) bool {
	i, found := slices.BinarySearchFunc(starts, x, func(s column, x float64) int { return compare(s.left, x) })
	return found || i > 0 && x <= starts[i-1].right
}

// lines are where the lines of a cell stand.
func (c *cell) lines() []document.Box {
	lines := []document.Box{c.runs[0].box}
	for _, r := range c.runs[1:] {
		if last := len(lines) - 1; sharedHeight(lines[last], r.box) >= 0.5 {
			lines[last] = union(lines[last], r.box)
		} else {
			lines = append(lines, r.box)
		}
	}
	return lines
}

// splitAt parts runs where a letter stands at the start of a column: a run that
// reaches there stands out of its own.
func splitAt(runs []run, starts []column) []run {
	var out []run
	for _, r := range runs {
		from := 0
		for i, c := range r.chars {
			if i > from && !c.isBlank() && !sameWord(r.chars[i-1], c) && startsAt(starts, c.box.Left) {
				out = append(out, r.part(from, i))
				from = i
			}
		}
		if from > 0 {
			r = r.part(from, len(r.chars))
		}
		out = append(out, r)
	}
	return out
}

// sameWord says whether a character goes on with the word or number of the one before.
func sameWord(before, c char) bool {
	return unicode.IsLetter(before.rune) && unicode.IsLower(c.rune) || unicode.IsDigit(before.rune) && unicode.IsDigit(c.rune)
}

// part is a run of some of the characters of a run.
func (r run) part(from, to int) run {
	r.chars = r.chars[from:to]
	r.text, r.box = textOfChars(r.chars)
	return r
}

// columnsOfRows are the columns of rows: as many as the header has cells, the
// first row, or more where a quarter of the rows have more.
func columnsOfRows(rows [][]*cell) []column {
	counts := map[int]int{}
	for _, row := range rows {
		counts[len(row)]++
	}
	n := len(rows[0])
	for k, times := range counts {
		if k > n && 4*times >= len(rows) {
			n = k
		}
	}
	full := slices.DeleteFunc(slices.Clone(rows), func(row []*cell) bool { return len(row) != n })
	columns := make([]column, n)
	for j := range columns {
		var lefts, rights []float64
		for _, row := range full {
			lefts, rights = append(lefts, row[j].box.Left), append(rights, row[j].box.Right)
		}
		columns[j] = column{median(lefts), slices.Max(rights)}
	}
	return columns
}

// column is where the cells of a column stand.
type column struct{ left, right float64 }

func (c column) centre() float64 { return (c.left + c.right) / 2 }

// far is how far two are from being aligned.
func (c column) far(b column) float64 {
	return min(abs(b.left-c.left), abs(b.centre()-c.centre()), abs(b.right-c.right))
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// placed finds the columns of the cells of a row, from left to right at the least
// distance together: each its own, where there are enough.
func placed(w *work, row []*cell, columns []column) []int {
	step := 1
	if len(row) > len(columns) {
		step = 0
	}
	least := make([]float64, len(columns)+1) // of the cells so far, in the first j columns
	here := make([][]bool, len(row))         // whether the last of them is in the last of these
	for i, c := range row {
		w.did(len(columns))
		next := make([]float64, len(columns)+1)
		next[0], here[i] = math.Inf(1), make([]bool, len(columns)+1)
		for j := 1; j <= len(columns); j++ {
			next[j] = next[j-1]
			if d := least[j-step] + columns[j-1].far(column{c.box.Left, c.box.Right}); d < next[j] {
				next[j], here[i][j] = d, true
			}
		}
		least = next
	}
	places := make([]int, len(row))
	j := len(columns)
	for i := len(row) - 1; i >= 0; i-- {
		for !here[i][j] {
			j--
		}
		places[i] = j - 1
		j -= step
	}
	return places
}

func (c *cell) text(w *work) string { return strings.TrimSpace(textOf(w, c.runs)) }
