package pdf

import (
	"slices"

	"sluice/document"
)

const (
	leastRows   = 3
	columnSpace = 5.0 // points of white between two columns, all rows together
)

// withAligned makes tables of neighbouring rows whose pieces stand in columns.
func withAligned(items []item) []item {
	rows := rowsOf(items, func(i item) document.Box { return i.box })
	var out []item
	for at := 0; at < len(rows); {
		n := alignedRows(rows[at:])
		if n < leastRows {
			slices.SortStableFunc(rows[at], func(a, b item) int { return compare(a.box.Left, b.box.Left) })
			out = append(out, rows[at]...)
			at++
			continue
		}
		t := tableOf(rows[at : at+n])
		out = append(out, item{box: t.box, table: t})
		at += n
	}
	return out
}

// alignedRows is how many of the first rows make a table, 0 for none: each but
// those that go on with a cell has as many pieces as there are columns.
func alignedRows(rows [][]item) int {
	if !parted(rows[0]) {
		return 0
	}
	n, full := 0, 0
	for n < len(rows) && onlyLines(rows[n]) && follows(rows, n) {
		columns := columnsOf(rows[:n+1])
		if len(columns) < 2 || len(columns) < len(rows[0]) {
			break
		}
		if parted(rows[n]) {
			full++
		} else if left := rows[n][0].box.Left; left < columns[1].Left-2 {
			break // a line of its own that begins where the table does
		}
		n++
	}
	for n > 0 && !parted(rows[n-1]) && full < leastRows {
		n--
	}
	if full < leastRows {
		return 0
	}
	return n
}

func parted(row []item) bool { return len(row) >= 2 }

func onlyLines(row []item) bool {
	return !slices.ContainsFunc(row, func(i item) bool {
		return i.line == nil || i.line.turned || isBullet(firstWord(i.line.text))
	})
}

// follows says whether row n follows the one before it without a wide gap.
func follows(rows [][]item, n int) bool {
	return n == 0 || boxOf(rows[n]).Top-boxOf(rows[n-1]).Bottom < 2.2*rows[n][0].line.size
}

// columnsOf are the intervals that the pieces of all rows cover together, with
// white between them.
func columnsOf(rows [][]item) []document.Box {
	var boxes []document.Box
	for _, row := range rows {
		for _, i := range row {
			boxes = append(boxes, i.box)
		}
	}
	slices.SortFunc(boxes, func(a, b document.Box) int { return compare(a.Left, b.Left) })
	var columns []document.Box
	for _, b := range boxes {
		if last := len(columns) - 1; last >= 0 && b.Left < columns[last].Right+columnSpace {
			columns[last] = union(columns[last], b)
		} else {
			columns = append(columns, b)
		}
	}
	return columns
}

// tableOf puts pieces into columns and rows.
func tableOf(rows [][]item) *table {
	columns := columnsOf(rows)
	t := &table{box: boxOf(slices.Concat(rows...)), page: rows[0][0].line.page, bold: true}
	for _, c := range columns {
		t.columns = append(t.columns, column{c.Left, c.Right})
	}
	for n, row := range rows {
		t.addRow(row, columns, beginsRow(row, columns))
		for _, i := range row {
			t.bold = t.bold && (n > 0 || i.line.bold)
		}
	}
	t.header = headerOf(t.rows, t.bold)
	return t
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
