package chunk

import (
	"math"
	"strings"

	"sluice/document"
)

// longLead bounds what is said again before the rows of every part of a table.
var longLead = limits{words: maxWords / 4, pieces: maxPieces / 4}

// leadTo is the caption of the table blocks[i], or else the line that leads to it.
func leadTo(text string, blocks []*document.Block, i int) string {
	if caption := blocks[i].Grid.Caption; caption != "" {
		return caption
	}
	if i > 0 && (leads(text, blocks[i-1]) || blocks[i-1].Kind == document.Caption) {
		if s := text[blocks[i-1].Start:blocks[i-1].End]; measure(s, longLead).fits(len(s), longLead) {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return ""
}

// inWords packs what reaches from start to the end of a block, its tables in
// words, and says whether that was possible in one piece.
func (p *packer) inWords(start int, b *document.Block) bool {
	if !fitsShown(b.End - start) {
		return false
	}
	tables := tablesIn(b, nil)
	index := wordsOf(p.text, start, b.End, tables, maxBytes)
	s := measure(index, p.limits)
	if !s.fits(len(index), p.limits) {
		return false
	}
	p.tables = append(p.tables, tables...)
	p.add(start, b.End, s)
	return true
}

// tablesIn adds the tables whose cells are known in a block, in order.
func tablesIn(b *document.Block, tables []*document.Block) []*document.Block {
	if isTable(b) {
		return append(tables, b)
	}
	for _, c := range b.Children {
		tables = tablesIn(c, tables)
	}
	return tables
}

// wordsOf is the text [start, end) with its tables in words: what stands before
// their rows, and then a sentence for each row. It may end where it is longer than
// so many bytes: tables that say their headers again and again outgrow their text.
func wordsOf(text string, start, end int, tables []*document.Block, limit int) string {
	var out strings.Builder
	for _, b := range tables {
		out.WriteString(text[start:b.Grid.Rows[0].Start])
		columns := columnsOf(b.Grid)
		for i, row := range body(b.Grid) {
			if i > 0 {
				out.WriteByte('\n')
			}
			if out.WriteString(columns.sentence(row.Cells)); out.Len() > limit {
				return out.String()
			}
		}
		start = b.End
	}
	out.WriteString(text[start:end])
	return out.String()
}

// index is what the chunk under way is found by, "" if it has no table.
func (p *packer) index() string {
	until := len(p.tables) // those of the next chunk are there already
	for until > 0 && p.tables[until-1].Start >= p.end {
		until--
	}
	from := until
	for from > 0 && p.tables[from-1].Start >= p.start {
		from--
	}
	if from == until {
		return ""
	}
	return wordsOf(p.text, p.start, p.end, p.tables[from:until], math.MaxInt) // it fits
}

// isTable says whether a block is a table whose cells are known.
func isTable(b *document.Block) bool { return b.Kind == document.Table && b.Grid != nil }

// table makes chunks of whole rows. Each is found by its rows in words, a
// sentence each, after the table's lead; the first also shows what is before
// its rows, from start on. A row that fits into no chunk is cut as text is, and so
// is one when the tables of the text have said more than it may again.
func (p *packer) table(b *document.Block, start int, lead string) {
	columns := columnsOf(b.Grid)
	lead = unfit(lead)
	c := Chunk{Start: start, End: start, Headings: p.path}
	for _, row := range body(b.Grid) {
		words, spare := columns.sentence(row.Cells), p.spare > 0
		if !spare || !p.takes(c, row, joined(c.Index, words)) {
			p.emit(c)
			c = Chunk{Start: max(c.Start, c.End), End: c.End, Headings: p.path}
		}
		if c.Index == "" {
			words = joined(lead, words)
		}
		if spare && p.takes(c, row, joined(c.Index, words)) {
			p.spare -= max(0, len(words)-(row.End-row.Start))
			c.Index, c.End = joined(c.Index, words), row.End
			continue
		}
		p.cut(c.Start, row.End, line, word, prefix(p.limits))
		p.flush()
		c = Chunk{Start: row.End, End: row.End, Headings: p.path}
	}
	p.emit(c)
	p.cut(c.End, b.End, line, word, prefix(p.limits))
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
func (p *packer) takes(c Chunk, row document.Row, index string) bool {
	return measure(index, p.limits).fits(len(index), p.limits) && fitsShown(row.End-c.Start)
}

// emit adds a chunk of rows, if it has any.
func (p *packer) emit(c Chunk) {
	if c.Start, c.End = trim(p.text, c.Start, c.End); c.Start < c.End {
		p.chunks = append(p.chunks, c)
	}
}

// fitsShown says whether so many bytes may be shown as one chunk: the marks and
// spaces of a table are no reason to cut it.
func fitsShown(n int) bool { return n <= 2*maxBytes }

// columns are the names of a table's columns, and which have that of the one before.
type columns struct {
	names []string
	again []bool
}

func columnsOf(g *document.Grid) columns {
	c := columns{names: g.Columns()}
	for i, name := range c.names {
		c.names[i] = strings.TrimSuffix(name, ":")
		c.again = append(c.again, i > 0 && c.names[i] == c.names[i-1])
	}
	for i, name := range c.names {
		c.names[i] = unfit(name)
	}
	return c
}

// unfit leaves of a text that fits into no chunk just as much as fits into none.
func unfit(s string) string { return s[:min(len(s), maxBytes+1)] }

// sentence says a row in words: each cell after the name of its column. What
// spans several columns of one name is said once. One that fits into no chunk may
// end before its last cell.
func (c columns) sentence(cells []string) string {
	var out strings.Builder
	for i, cell := range cells {
		if cell == "" || i > 0 && cell == cells[i-1] && c.sameAsBefore(i) {
			continue
		}
		if out.Len() > maxBytes {
			return out.String()
		}
		if out.Len() > 0 {
			out.WriteString("; ")
		}
		if i < len(c.names) && c.names[i] != "" {
			out.WriteString(c.names[i])
			out.WriteString(": ")
		}
		out.WriteString(cell)
	}
	if out.Len() == 0 {
		return ""
	}
	return strings.TrimRight(out.String(), ".") + "."
}

// sameAsBefore says whether column i has the name of the one before it, or both none.
func (c columns) sameAsBefore(i int) bool {
	switch {
	case i < len(c.names):
		return c.again[i]
	case i == len(c.names):
		return c.names[i-1] == ""
	}
	return true
}

// joined puts two texts on lines of their own.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
