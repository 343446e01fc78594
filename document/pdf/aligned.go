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
func withAligned(w *work, items []item) []item {
	rows := rowsOf(w, items, func(i item) document.Box { return i.box })
	var out []item
	for at := 0; at < len(rows); {
		n := alignedRows(w, rows[at:])
		if n < leastRows {
			sortBy(w, rows[at], func(a, b item) int { return compare(a.box.Left, b.box.Left) })
			out = append(out, rows[at]...)
			at++
			continue
		}
		t := tableOf(w, rows[at:at+n])
		out = append(out, item{box: t.box, table: t})
		at += n
	}
	return out
}

// alignedRows is how many of the first rows make a table, 0 for none: each but
// those that go on with a cell has as many pieces as there are columns.
func alignedRows(w *work, rows [][]item) int {
	if !parted(rows[0]) {
		return 0
	}
	n, full := 0, 0
	var columns []document.Box
	for n < len(rows) && onlyLines(rows[n]) && follows(rows, n) {
		columns = withColumnsOf(w, columns, rows[n])
		if len(columns) < 2 || len(columns) < len(rows[0]) || len(columns)*(n+1) > mostCells {
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
func columnsOf(w *work, rows [][]item) (columns []document.Box) {
	for _, row := range rows {
		columns = withColumnsOf(w, columns, row)
	}
	return columns
}

// withColumnsOf are the columns with one more row.
func withColumnsOf(w *work, columns []document.Box, row []item) []document.Box {
	all := slices.Clone(columns)
	for _, i := range row {
		all = append(all, i.box)
	}
	slices.SortFunc(all, func(a, b document.Box) int {
		w.did(1)
		return compare(a.Left, b.Left)
	})
	columns = columns[:0]
	for _, b := range all {
		if last := len(columns) - 1; last >= 0 && b.Left < columns[last].Right+columnSpace {
			columns[last] = union(columns[last], b)
		} else {
			columns = append(columns, b)
		}
	}
	return columns
}

// tableOf puts pieces into columns and rows.
func tableOf(w *work, rows [][]item) *table {
	columns := columnsOf(w, rows)
	t := &table{box: boxOf(slices.Concat(rows...)), page: rows[0][0].line.page}
	for _, c := range columns {
		t.columns = append(t.columns, column{c.Left, c.Right})
	}
	var drawn [][]item // each with the lines that go on with it
	for n, row := range rows {
		sortBy(w, row, func(a, b item) int { return compare(a.box.Left, b.box.Left) })
		if n == 0 || beginsRow(row, columns) {
			drawn = append(drawn, slices.Clone(row))
		} else {
			drawn[len(drawn)-1] = append(drawn[len(drawn)-1], row...)
		}
	}
	for _, row := range drawn {
		w.did(len(row) + len(columns))
		t.rows = append(t.rows, cellsIn(row, columns))
	}
	t.bold = !slices.ContainsFunc(rows[0], func(i item) bool { return !i.line.bold })
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

// columnOf is the column that a box of its rows is in.
func columnOf(columns []document.Box, b document.Box) int {
	at, _ := slices.BinarySearchFunc(columns, b, func(c, b document.Box) int { return compare(c.Right, b.Right) })
	return at
}

// cellsIn is the text of each cell of a row.
func cellsIn(row []item, columns []document.Box) []string {
	parts := make([][]string, len(columns))
	for _, i := range row {
		at := columnOf(columns, i.box)
		parts[at] = append(parts[at], i.line.text)
	}
	return joinedParts(parts)
}

// joinedParts are cells of what stands in each.
func joinedParts(parts [][]string) []string {
	cells := make([]string, len(parts))
	for i, lines := range parts {
		cells[i] = joinLines(lines)
	}
	return cells
}
