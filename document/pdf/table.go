package pdf

import (
	"slices"
	"sort"
	"strings"

	"sluice/document"
)

// table is a grid found on a page.
type table struct {
	box     document.Box
	columns []column
	rows    [][]string
	header  int
	bold    bool // its first row
	page    int
	pages   []int
	ids     []string
	merge   *document.Merge
	places  []document.Place
}

const (
	maxRepeated = 16      // times as much as its own may a table say with cells that span several places
	touching    = 3.0     // points between rules that meet
	maxRules    = 4000    // of a page, that are looked at
	maxLooks    = 4 << 20 // at runs of a page, for all of its tables of rules; for any more there are none
)

// findRuled makes tables of rules that cross, and takes their runs away.
func (p *page) findRuled() {
	for _, group := range connected(p.work, p.rules) {
		xs, ys := gridOf(group)
		if len(xs) < 3 || len(ys) < 3 || (len(xs)-1)*(len(ys)-1) > mostCells || p.looks < 0 {
			continue
		}
		t := &table{box: document.Box{Left: xs[0], Top: ys[0], Right: xs[len(xs)-1], Bottom: ys[len(ys)-1]}, page: p.number}
		if !t.fill(p.work, p.cellsOf(xs, ys), group, xs, ys) {
			continue
		}
		p.runs = slices.DeleteFunc(p.runs, func(r run) bool { i, _ := cellAt(xs, ys, r); return i >= 0 })
		p.tables = append(p.tables, t)
	}
}

// connected groups rules that touch, at most maxRules of them.
func connected(w *work, rules []document.Box) [][]document.Box {
	rules = slices.Clone(rules[:min(len(rules), maxRules)])
	sortBy(w, rules, func(a, b document.Box) int { return compare(a.Top, b.Top) })
	parent := make([]int, len(rules))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for i, a := range rules {
		for j := i + 1; j < len(rules) && rules[j].Top <= a.Bottom+touching; j++ {
			w.did(1)
			if b := rules[j]; b.Left <= a.Right+touching && a.Left <= b.Right+touching {
				parent[root(j)] = root(i)
			}
		}
	}
	groups := map[int][]document.Box{}
	var order []int
	for i, r := range rules {
		at := root(i)
		if groups[at] == nil {
			order = append(order, at)
		}
		groups[at] = append(groups[at], r)
	}
	var out [][]document.Box
	for _, at := range order {
		out = append(out, groups[at])
	}
	return out
}

// gridOf returns the places of the vertical and the horizontal rules.
func gridOf(group []document.Box) (xs, ys []float64) {
	for _, r := range group {
		if width(r) <= 3 && height(r) > 3 {
			xs = append(xs, centre(r))
		} else if height(r) <= 3 {
			ys = append(ys, middle(r))
		}
	}
	return clustered(xs), clustered(ys)
}

// clustered sorts values and takes those together that nearly are the same.
func clustered(values []float64) []float64 {
	slices.Sort(values)
	var out []float64
	for _, v := range values {
		if len(out) == 0 || v-out[len(out)-1] > 2*touching {
			out = append(out, v)
		}
	}
	return out
}

// cellsOf are the runs inside a grid, by row and column.
func (p *page) cellsOf(xs, ys []float64) [][][]run {
	p.looked(len(p.runs))
	cells := make([][][]run, len(ys)-1)
	for i := range cells {
		cells[i] = make([][]run, len(xs)-1)
	}
	for _, r := range p.runs {
		if i, j := cellAt(xs, ys, r); i >= 0 {
			cells[i][j] = append(cells[i][j], r)
		}
	}
	return cells
}

// cellAt is the row and the column of a grid that a run is in, -1 for none.
func cellAt(xs, ys []float64, r run) (i, j int) {
	i, j = interval(ys, middle(r.box)), interval(xs, centre(r.box))
	if i < 0 || j < 0 || r.turned {
		return -1, -1
	}
	return i, j
}

// interval is the index of the interval between two of the bounds that holds v, or -1.
func interval(bounds []float64, v float64) int {
	last := len(bounds) - 1
	if !(v >= bounds[0]-1 && v <= bounds[last]+1) {
		return -1
	}
	return sort.Search(last-1, func(i int) bool { return v < bounds[i+1] })
}

// fill makes the text of the cells. Where no rule stands between two, they are
// one, and both have its text. It says whether the result is a table: at least
// two rows and columns have text.
func (t *table) fill(w *work, cells [][][]run, rules []document.Box, xs, ys []float64) bool {
	used, own := map[int]bool{}, 0
	upright, level := nearest(rules, xs, ys)
	sides := len(slices.Concat(upright...))
	for i, row := range cells {
		w.did(len(row) + sides)
		t.rows = append(t.rows, make([]string, len(row)))
		mid := (ys[i] + ys[i+1]) / 2
		for from, to := 0, 1; from < len(row); from, to = to, to+1 {
			for to < len(row) && !slices.ContainsFunc(upright[to], func(r document.Box) bool { return r.Top <= mid && mid <= r.Bottom }) {
				to++
			}
			text := textOf(w, slices.Concat(row[from:to]...))
			own += len(text)
			for j := from; j < to; j++ {
				t.rows[i][j] = text
				used[j] = used[j] || len(row[j]) > 0
			}
		}
		if i == 0 {
			t.bold = allBold(row)
		}
	}
	t.spanRows(w, level, xs)
	if t.length() > maxRepeated*(own+4<<10) {
		return false
	}
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return strings.Join(row, "") == "" })
	for j := 1; j < len(xs); j++ {
		t.columns = append(t.columns, column{xs[j-1], xs[j]})
	}
	t.header = headerOf(t.rows, t.bold)
	return len(t.rows) >= 2 && len(used) >= 2 && countTrue(used) >= 2
}

// spanRows repeats a cell in those below it that no rule parts from it.
func (t *table) spanRows(w *work, level [][]document.Box, xs []float64) {
	for i := 1; i < len(t.rows); i++ {
		for j := range t.rows[i] {
			w.did(1 + len(level[i]))
			mid := (xs[j] + xs[j+1]) / 2
			if t.rows[i][j] == "" && !slices.ContainsFunc(level[i], func(r document.Box) bool { return r.Left <= mid && mid <= r.Right }) {
				t.rows[i][j] = t.rows[i-1][j]
			}
		}
	}
}

// length is how many bytes the cells have, repeated ones too.
func (t *table) length() (n int) {
	for _, row := range t.rows {
		for _, cell := range row {
			n += len(cell)
		}
	}
	return n
}

// nearest are the rules at each of the places of a grid, upright and level.
func nearest(rules []document.Box, xs, ys []float64) (upright, level [][]document.Box) {
	upright, level = make([][]document.Box, len(xs)), make([][]document.Box, len(ys))
	for _, r := range rules {
		if height(r) <= 3 {
			addNear(level, ys, middle(r), r)
		} else if width(r) <= 3 {
			addNear(upright, xs, centre(r), r)
		}
	}
	return upright, level
}

// addNear adds a rule to the places that are near it.
func addNear(at [][]document.Box, places []float64, place float64, r document.Box) {
	for i := sort.SearchFloat64s(places, place-2*touching); i < len(places) && places[i] < place+2*touching; i++ {
		if places[i] > place-2*touching {
			at[i] = append(at[i], r)
		}
	}
}

func textOf(w *work, runs []run) string {
	var lines []string
	for _, row := range rowsOf(w, runs, func(r run) document.Box { return r.box }) {
		sortBy(w, row, func(a, b run) int { return compare(a.box.Left, b.box.Left) })
		lines = append(lines, lineOf(row).text)
	}
	return joinLines(lines)
}

func allBold(cells [][]run) bool {
	bold := false
	for _, cell := range cells {
		for _, r := range cell {
			if !r.bold {
				return false
			}
			bold = true
		}
	}
	return bold
}

func countTrue(set map[int]bool) int {
	n := 0
	for _, v := range set {
		if v {
			n++
		}
	}
	return n
}

// headerOf: the first row is a header if it is bold or has words only while
// some other row has a number.
func headerOf(rows [][]string, bold bool) int {
	if bold {
		return 1
	}
	if len(rows) < 2 || hasNumber(rows[0]) || slices.Contains(rows[0], "") {
		return 0
	}
	if slices.ContainsFunc(rows[1:], hasNumber) {
		return 1
	}
	return 0
}

func hasNumber(row []string) bool {
	return slices.ContainsFunc(row, func(cell string) bool { return strings.ContainsAny(cell, "0123456789") })
}

// grid is the table as the document has it.
func (t *table) grid(caption string) *document.Grid {
	g := &document.Grid{Caption: caption, Header: t.header, Merge: t.merge}
	for _, row := range t.rows {
		g.Rows = append(g.Rows, document.Row{Cells: row})
	}
	return g
}
