package chunk

import (
	"strings"

	"sluice/document"
)

// leadTo is the caption of the table blocks[i], or else the line that leads to it.
func leadTo(text string, blocks []*document.Block, i int) string {
	if caption := blocks[i].Grid.Caption; caption != "" {
		return caption
	}
	if i > 0 && (leads(text, blocks[i-1]) || blocks[i-1].Kind == document.Caption) {
		if s := text[blocks[i-1].Start:blocks[i-1].End]; measure(s, maxPieces/4).fits(len(s), maxPieces/4) {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return ""
}

// table makes chunks of whole rows. Each is found by its rows in words, a
// sentence each, after the table's lead; the first also shows what is before
// its rows. A row that fits into no chunk is cut as text is.
func (u units) table(p *packer, b *document.Block, lead string) {
	columns := b.Grid.Columns()
	c := Chunk{Start: b.Start, End: b.Start, Headings: p.path}
	for _, row := range body(b.Grid) {
		words := sentenceOf(columns, row.Cells)
		if !u.takes(p, c, row, joined(c.Index, words)) {
			u.emit(c)
			c = Chunk{Start: max(c.Start, c.End), End: c.End, Headings: p.path}
		}
		if c.Index == "" {
			words = joined(lead, words)
		}
		if u.takes(p, c, row, joined(c.Index, words)) {
			c.Index, c.End = joined(c.Index, words), row.End
			continue
		}
		p.cut(c.Start, row.End, line, word, prefix(p.pieces))
		p.flush()
		c = Chunk{Start: row.End, End: row.End, Headings: p.path}
	}
	u.emit(c)
	p.cut(c.End, b.End, line, word, prefix(p.pieces))
	p.flush()
}

// body is the rows below the header, or all if there are no others.
func body(g *document.Grid) []document.Row {
	if g.Header < len(g.Rows) {
		return g.Rows[g.Header:]
	}
	return g.Rows
}

// takes says whether the chunk with one more row, and with that index text, is
// within the limits.
func (u units) takes(p *packer, c Chunk, row document.Row, index string) bool {
	return measure(index, p.pieces).fits(len(index), p.pieces) && fitsShown(row.End-c.Start)
}

// emit adds a chunk of rows, if it has any.
func (u units) emit(c Chunk) {
	if c.Start, c.End = trim(u.text, c.Start, c.End); c.Start < c.End {
		u.chunks = append(u.chunks, c)
	}
}

// fitsShown says whether so many bytes may be shown as one chunk: the marks and
// spaces of a table are no reason to cut it.
func fitsShown(n int) bool { return n <= 2*maxBytes }

// sentenceOf says a row in words: each cell after the name of its column. What
// spans several columns of one name is said once.
func sentenceOf(columns, cells []string) string {
	var parts []string
	for i, cell := range cells {
		if cell == "" || i > 0 && cell == cells[i-1] && nameOf(columns, i) == nameOf(columns, i-1) {
			continue
		}
		if name := nameOf(columns, i); name != "" {
			cell = name + ": " + cell
		}
		parts = append(parts, cell)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.TrimRight(strings.Join(parts, "; "), ".") + "."
}

func nameOf(columns []string, i int) string {
	if i < len(columns) {
		return strings.TrimSuffix(columns[i], ":")
	}
	return ""
}

// joined puts two texts on lines of their own.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
