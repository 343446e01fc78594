package document

import "slices"

// gridRow is the row under way, cell by cell.
type gridRow struct {
	cells   []gridCell
	spans   []span // of the cells, begun and ended
	headers int    // cells that are th
	caption bool
}

type gridCell struct {
	text string
	span span
}

// begin opens a cell.
func (r *gridRow) begin(header bool, s span) {
	r.spans = append(r.spans, s)
	if header {
		r.headers++
	}
}

// add closes a cell; text that stands in none is a cell too.
func (r *gridRow) add(text string) {
	c := gridCell{text: text}
	if len(r.cells) < len(r.spans) {
		c.span = r.spans[len(r.cells)]
	}
	r.cells = append(r.cells, c)
}

// gridBuilder builds a table from its rows, with what spans several places repeated
// in each: at most maxTableCells cells, and as much as the file may say again;
// beyond that there is no grid.
type gridBuilder struct {
	caption string
	header  int
	rows    []Row
	below   []gridCell // what reaches from above into each column, with the rows left
	cells   int
	spare   *int // bytes, of the whole file
}

// add adds the row that the text has before position end.
func (g *gridBuilder) add(r gridRow, line string, end int) {
	if r.caption && len(g.rows) == 0 {
		g.caption = line
		return
	}
	if r.headers > 0 && r.headers == len(r.cells) && g.header == len(g.rows) {
		g.header++
	}
	row := Row{Start: end - len(line), End: end}
	for _, c := range r.cells {
		row.Cells = g.reaching(row.Cells)
		below := gridCell{c.text, span{rows: c.span.rows - 1}}
		row.Cells = g.place(row.Cells, below)
		for range c.span.columns - 1 {
			row.Cells = g.again(row.Cells, below)
		}
	}
	row.Cells = g.reaching(row.Cells)
	g.rows = append(g.rows, row)
}

// reaching adds what reaches from above into the next columns.
func (g *gridBuilder) reaching(cells []string) []string {
	for g.cells <= maxTableCells && len(cells) < len(g.below) && g.below[len(cells)].span.rows > 0 {
		c := g.below[len(cells)]
		c.span.rows--
		cells = g.again(cells, c)
	}
	return cells
}

// again puts a cell into one more place that it spans.
func (g *gridBuilder) again(cells []string, c gridCell) []string {
	if *g.spare -= len(c.text) + spanCost; *g.spare < 0 {
		g.cells = maxTableCells // it is too large
	}
	return g.place(cells, c)
}

// place puts a cell into the next column.
func (g *gridBuilder) place(cells []string, c gridCell) []string {
	if g.cells++; g.cells > maxTableCells {
		return cells
	}
	if at := len(cells); at == len(g.below) {
		g.below = append(g.below, c)
	} else {
		g.below[at] = c
	}
	return append(cells, c.text)
}

// table returns what was built, nil if it is too large or has no row.
func (g *gridBuilder) table() *Grid {
	if g.cells > maxTableCells || len(g.rows) == 0 {
		return nil
	}
	return &Grid{Caption: g.caption, Header: g.header, Rows: slices.Clip(g.rows)}
}
