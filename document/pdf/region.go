package pdf

import (
	"slices"

	"sluice/document"
)

// region is where a table of horizontal rules alone stands on a page.
type region struct {
	page  *page
	box   document.Box
	bands [][]run // what stands between two rules, the header first
}

// region takes what stands between rules off the page.
func (l *lined) region(rules []document.Box) (region, bool) {
	box := document.Box{Left: rules[0].Left - touching, Right: rules[0].Right + touching, Top: rules[0].Top, Bottom: rules[len(rules)-1].Bottom}
	if l.crossed(box) {
		return region{}, false
	}
	r := region{page: l.page, box: box}
	r.bands = make([][]run, len(rules)-1)
	within := false // what is drawn in between, to the right, belongs to it: columns may not end where the rules do
	any := false
	l.looked(len(l.runs))
	for i, one := range l.runs {
		if l.taken[i] {
			continue
		}
		level := middle(one.box) > box.Top && middle(one.box) < rules[len(rules)-1].Top && !one.turned
		if within = level && (holds(box, one.box) || within && one.box.Left > centre(box)); within {
			at, _ := slices.BinarySearchFunc(rules[1:], middle(one.box), func(b document.Box, y float64) int {
				if y < b.Top {
					return 1
				}
				return -1
			})
			r.bands[at], r.box = append(r.bands[at], one), union(r.box, one.box)
			l.taken[i], any = true, true
		}
	}
	return r, any
}

// makeLined makes tables of regions. Those that repeat a header on the next page
// have the columns of the whole.
func makeLined(w *work, regions []region) {
	for from, i := 0, 1; i <= len(regions); i++ {
		w.did(1)
		if i < len(regions) && regions[i].goesOn(regions[i-1]) {
			continue
		}
		tablesOfRegions(w, regions[from:i])
		from = i
	}
}

// goesOn says whether a region repeats the header of the page before at the same place.
func (r region) goesOn(before region) bool {
	return r.page.number == before.page.number+1 && slices.EqualFunc(r.bands[0], before.bands[0], func(a, b run) bool {
		return a.text == b.text && abs(a.box.Left-b.box.Left) < 1 && abs(a.box.Right-b.box.Right) < 1
	})
}

const (
	mostCells  = 100_000 // of a table, as everywhere
	maxColumns = 100
	maxCells   = 400 // of a row, before they are put into columns
)

// tablesOfRegions makes one table of each region. What is none, as of one column,
// goes back to the page.
func tablesOfRegions(w *work, regions []region) {
	starts := columnStarts(w, regions)
	rows := make([][][]*cell, len(regions))
	for i, r := range regions {
		rows[i] = r.rows(w, starts)
	}
	columns := columnsOfRows(slices.Concat(rows...))
	for i, r := range regions {
		if !areTable(rows[i], columns) {
			r.page.runs = append(r.page.runs, slices.Concat(r.bands...)...)
			continue
		}
		t := &table{box: r.box, page: r.page.number, header: 1, bold: true, columns: columns}
		for _, row := range rows[i] {
			t.addCells(w, row)
		}
		r.page.tables = append(r.page.tables, t)
	}
}

func areTable(rows [][]*cell, columns []column) bool {
	return len(rows) >= 2 && len(columns) >= 2 && len(columns) <= maxColumns && len(rows)*len(columns) <= mostCells &&
		!slices.ContainsFunc(rows, func(row []*cell) bool { return len(row) > maxCells })
}

// rows are the rows of a region; its header is one.
func (r region) rows(w *work, starts []column) [][]*cell {
	var rows [][]*cell
	for i, band := range r.bands {
		w.did(len(band))
		drawn := drawnRows(band, starts)
		if i == 0 && len(drawn) > 0 {
			drawn = [][]*cell{slices.Concat(drawn...)}
		}
		rows = append(rows, drawn...)
	}
	return rows
}

// addCells adds a row.
func (t *table) addCells(w *work, row []*cell) {
	texts := make([]string, len(t.columns))
	for i, at := range placed(w, row, t.columns) {
		texts[at] = joinLines([]string{texts[at], row[i].text(w)})
	}
	t.rows = append(t.rows, texts)
}
