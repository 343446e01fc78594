package pdf

import (
	"slices"
	"strings"

	"sluice/document"
)

// findLined makes tables of horizontal rules alone, one below the other with the
// same ends: a header stands between the first two.
func (p *page) findLined() {
	for _, rules := range stacks(p.rules) {
		for len(rules) >= 2 {
			n := p.tableRules(rules)
			if n == 0 {
				rules, n = append([]document.Box{rules[0], rules[1], p.openEnd(rules)}, rules[2:]...), 3
			}
			if n < 3 {
				rules = rules[1:]
				continue
			}
			if t, rest := p.lined(rules[:n]); t != nil {
				p.runs = rest
				p.tables = append(p.tables, t)
			}
			rules = rules[n:]
		}
	}
}

// stacks groups horizontal rules with the same ends, from the top, each height once.
func stacks(rules []document.Box) [][]document.Box {
	var out [][]document.Box
	sorted := slices.DeleteFunc(slices.Clone(rules), func(r document.Box) bool { return height(r) > 3 || width(r) < 50 })
	slices.SortFunc(sorted, func(a, b document.Box) int { return compare(a.Top, b.Top) })
	for _, r := range sorted {
		at := slices.IndexFunc(out, func(s []document.Box) bool {
			return abs(s[0].Left-r.Left) < touching && abs(s[0].Right-r.Right) < touching
		})
		switch {
		case at < 0:
			out = append(out, []document.Box{r})
		case r.Top-out[at][len(out[at])-1].Top > touching:
			out[at] = append(out[at], r)
		}
	}
	return out
}

// tableRules is how many of the rules are one table's: up to the next thick one
// where the first is thicker than the second, 0 if there is none, as where the
// table goes on on the next page; else as far as columns of text stand between
// each two.
func (p *page) tableRules(rules []document.Box) int {
	if height(rules[0]) > 1.3*height(rules[1]) {
		for i := 2; i < len(rules); i++ {
			if height(rules[i]) > 1.3*height(rules[1]) {
				return i + 1
			}
		}
		return 0
	}
	n := 1
	for n < len(rules) && len(columnsOf(asRows(p.between(rules[n-1], rules[n])))) >= 2 {
		n++
	}
	return n
}

// openEnd stands for the last rule of a table that goes on on the next page:
// below the text that follows the first two without a gap and inside of their ends.
func (p *page) openEnd(rules []document.Box) document.Box {
	end := rules[1]
	level := slices.DeleteFunc(slices.Clone(p.runs), func(r run) bool { return r.turned || middle(r.box) < rules[1].Bottom })
	slices.SortFunc(level, func(a, b run) int { return compare(a.box.Top, b.box.Top) })
	for _, r := range level {
		inside := end.Left-touching < r.box.Left && r.box.Right < end.Right+touching
		if !inside || r.box.Top-end.Bottom > 2*r.size {
			break
		}
		end.Bottom = max(end.Bottom, r.box.Bottom)
	}
	end.Top, end.Bottom = end.Bottom+1, end.Bottom+2
	return end
}

// between are the runs between two rules, as items.
func (p *page) between(above, below document.Box) []item {
	band := document.Box{Left: above.Left - touching, Right: above.Right + touching, Top: above.Bottom, Bottom: below.Top}
	var items []item
	for _, r := range p.runs {
		if !r.turned && holds(band, r.box) {
			items = append(items, item{box: r.box, line: &line{text: strings.TrimSpace(r.text), box: r.box, size: r.size, bold: r.bold, page: p.number}})
		}
	}
	return items
}

func asRows(items []item) [][]item {
	return rowsOf(items, func(i item) document.Box { return i.box })
}

// lined makes a table of what stands between rules, and returns the other runs.
func (p *page) lined(rules []document.Box) (*table, []run) {
	box := document.Box{Left: rules[0].Left - touching, Right: rules[0].Right + touching, Top: rules[0].Top, Bottom: rules[len(rules)-1].Bottom}
	if p.crossed(box) {
		return nil, nil
	}
	var rows [][]*cell
	for i := 1; i < len(rules); i++ {
		rows = append(rows, p.band(rules[i-1], rules[i], i == 1)...)
	}
	if len(rows) < 2 {
		return nil, nil
	}
	columns := columnsOfRows(rows)
	if len(columns) < 2 {
		return nil, nil
	}
	t := &table{box: box, page: p.number, header: 1, bold: true, columns: columns}
	for _, row := range rows {
		t.addCells(row)
	}
	return t, slices.DeleteFunc(slices.Clone(p.runs), func(r run) bool { return !r.turned && holds(box, r.box) })
}

// band are the rows between two rules; a header is one row.
func (p *page) band(above, below document.Box, header bool) [][]*cell {
	box := document.Box{Left: above.Left - touching, Right: above.Right + touching, Top: above.Bottom, Bottom: below.Top}
	var runs []run
	for _, r := range p.runs {
		if !r.turned && holds(box, r.box) {
			runs = append(runs, r)
		}
	}
	rows := drawnRows(runs)
	if header && len(rows) > 1 {
		return [][]*cell{slices.Concat(rows...)}
	}
	return rows
}

// addCells adds a row.
func (t *table) addCells(row []*cell) {
	texts := make([]string, len(t.columns))
	for i, at := range placed(row, t.columns) {
		texts[at] = joinLines([]string{texts[at], row[i].text()})
	}
	t.rows = append(t.rows, texts)
}

// crossed says whether text stands across the left or right end of a box: the
// rules there only part what is above from what is below.
func (p *page) crossed(box document.Box) bool {
	return slices.ContainsFunc(p.runs, func(r run) bool {
		return !r.turned && box.Top < middle(r.box) && middle(r.box) < box.Bottom &&
			(r.box.Left < box.Left && box.Left < r.box.Right || r.box.Left < box.Right && box.Right < r.box.Right)
	})
}

// beginsRow says whether a line of cells is a row by itself: it has a first
// cell, or more than half of the others. Fewer go on with the row above.
func beginsRow(row []item, columns []document.Box) bool {
	filled := map[int]bool{}
	for _, i := range row {
		filled[columnOf(columns, i.box)] = true
	}
	return filled[0] || 2*len(filled) > len(columns)-1
}

func columnOf(columns []document.Box, b document.Box) int {
	return slices.IndexFunc(columns, func(c document.Box) bool { return c.Left <= b.Left && b.Right <= c.Right })
}

// addRow adds a line of cells, as a row or to the last one.
func (t *table) addRow(row []item, columns []document.Box, begins bool) {
	if begins || len(t.rows) == 0 {
		t.rows = append(t.rows, make([]string, len(columns)))
	}
	slices.SortStableFunc(row, func(a, b item) int { return compare(a.box.Left, b.box.Left) })
	cells := t.rows[len(t.rows)-1]
	for _, i := range row {
		at := columnOf(columns, i.box)
		cells[at] = joinLines([]string{cells[at], i.line.text})
	}
}
