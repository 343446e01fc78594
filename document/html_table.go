package document

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// table is the open table. Inside it only rows and cells matter; a table in a
// cell is text of that cell.
type table struct {
	depth int // of tables inside each other
	start int // of its first row in the text, -1 before that
	cells []string
	cell  bool // a cell is open, even if it is empty
	row   gridRow
	grid  gridBuilder
}

func (x *extractor) startTable() {
	if x.table != nil {
		x.table.depth++
		x.space = true
		return
	}
	x.flush()
	x.table = &table{depth: 1, start: -1, grid: gridBuilder{spare: &x.spare}}
}

// inTable handles a start tag inside a table.
func (x *extractor) inTable(name atom.Atom, a attributes) {
	switch own := x.table.depth == 1; {
	case own && (name == atom.Td || name == atom.Th):
		x.endCell()
		x.table.cell = true
		x.table.row.begin(name == atom.Th, a.span)
	case own && (name == atom.Tr || name == atom.Caption):
		x.endRow()
		x.table.row.caption = name == atom.Caption
	default:
		x.space = x.space || breaksCell(name)
	}
}

// endInTable handles an end tag inside a table.
func (x *extractor) endInTable(name atom.Atom) {
	switch own := x.table.depth == 1; {
	case own && name == atom.Table:
		x.closeTable()
	case name == atom.Table:
		x.table.depth--
		x.space = true
	case own && (name == atom.Td || name == atom.Th):
		x.endCell()
	case own && (name == atom.Tr || name == atom.Caption):
		x.endRow()
	default:
		x.space = x.space || breaksCell(name)
	}
}

func breaksCell(name atom.Atom) bool {
	return breaking[name] || isList(name) || isItem(name) || headingLevel(name) > 0 || name == atom.Br ||
		name == atom.Pre || name == atom.Blockquote || name == atom.Td || name == atom.Th || name == atom.Tr
}

func (x *extractor) endCell() {
	text := x.take()
	if x.table.cell || text != "" {
		x.table.cells = append(x.table.cells, text)
		x.table.row.add(text)
	}
	x.table.cell = false
}

// endRow writes the cells on one line, unless all are empty.
func (x *extractor) endRow() {
	x.endCell()
	line := x.table.row
	x.table.row = gridRow{}
	if isBlank(strings.Join(x.table.cells, "")) {
		x.table.cells = x.table.cells[:0]
		return
	}
	row := strings.TrimSpace(strings.Join(x.table.cells, " | "))
	x.table.cells = x.table.cells[:0]
	if x.table.start < 0 {
		x.table.start = x.write(row)
	} else {
		x.out.WriteString("\n" + row)
	}
	x.table.grid.add(line, row, x.out.Len())
}

func (x *extractor) closeTable() {
	if x.table == nil {
		return
	}
	x.endRow()
	if x.table.start >= 0 {
		x.add(&Block{Kind: Table, Start: x.table.start, End: x.out.Len(), Grid: x.table.grid.table()})
	}
	x.table = nil
}
