package document

import "strings"

// Element is a piece of a document as a parser for pages finds it, in reading
// order. A run of items makes a list, items of greater depth lists inside it.
type Element struct {
	Kind   Kind
	Level  int    // of a heading, from 1
	Text   string // of all but tables
	Marker string // of an item, such as "-" or "3."
	Depth  int    // of an item, from 1
	Table  *Grid  // of a table: caption, header, cells and merge
	Places []Place
}

// Assemble writes the text of the elements and the tree over it: headings make
// sections, tables become Markdown's. Elements without text are left out. It
// fails with ErrTooManyBlocks.
func Assemble(elements []Element) (Document, error) {
	a := &assembler{}
	for _, e := range elements {
		e.Text = cleanRunes(e.Text)
		a.add(e)
		if a.blocks > maxBlocks {
			return Document{}, ErrTooManyBlocks
		}
	}
	a.close(0)
	doc := Document{Text: a.out.String(), Blocks: nest(a.top)}
	doc.Title = firstTitle(doc.Blocks)
	return doc, nil
}

// assembler writes elements. Open are lists and items in turn.
type assembler struct {
	textWriter
	open int
}

func (a *assembler) add(e Element) {
	switch {
	case e.Kind == Table:
		a.close(0)
		a.table(e)
	case isBlank(e.Text):
	case e.Kind == Item:
		a.item(e)
	default:
		a.close(0)
		a.text(e)
	}
}

// item opens as many lists as its depth says, and an item that stays open for
// deeper ones.
func (a *assembler) item(e Element) {
	depth := min(max(e.Depth, 1), maxNesting/2, a.open/2+1)
	a.close(2*depth - 1)
	if a.open < 2*depth-1 {
		a.begin(List)
		a.open++
	}
	a.begin(Item)
	a.open++
	if e.Marker != "" {
		a.marker = e.Marker + " "
	}
	a.text(Element{Kind: Paragraph, Text: e.Text, Places: e.Places})
}

// close closes all but so many of the open lists and items.
func (a *assembler) close(keep int) {
	for ; a.open > keep; a.open-- {
		if a.open%2 == 0 {
			a.finish(Item)
		} else {
			a.finish(List)
		}
	}
}

// text writes one block. A heading is one line.
func (a *assembler) text(e Element) {
	if e.Kind == Heading {
		if e.Text = strings.Join(strings.Fields(e.Text), " "); len(e.Text) > maxHeading {
			e.Kind = Paragraph
		}
		e.Level = min(max(e.Level, 1), 6)
	} else {
		e.Level = 0
	}
	a.line = append(a.line, e.Text...)
	a.place = e.Places
	a.leaf(e.Kind, e.Level)
	a.place = nil
}

// table writes a table as Markdown's. One without a header shows its first row
// as if it were one.
func (a *assembler) table(e Element) {
	if e.Table == nil || blankGrid(e.Table) {
		return
	}
	g := &Grid{Caption: oneLine(cleanRunes(e.Table.Caption)), Header: min(e.Table.Header, len(e.Table.Rows)), Merge: e.Table.Merge}
	b := &Block{Kind: Table, Grid: g, Places: e.Places}
	for i, row := range e.Table.Rows {
		for j, cell := range row.Cells {
			row.Cells[j] = strings.Join(strings.Fields(cleanRunes(cell)), " ")
		}
		line := rowLine(row.Cells)
		if i == 0 {
			b.Start = a.write(line)
		} else {
			a.out.WriteString("\n" + line)
		}
		g.Rows = append(g.Rows, Row{Start: a.out.Len() - len(line), End: a.out.Len(), Cells: row.Cells})
		if i == max(g.Header, 1)-1 {
			a.out.WriteString("\n|" + strings.Repeat(" --- |", max(len(row.Cells), 1)))
		}
	}
	b.End = a.out.Len()
	a.textWriter.add(b)
}

func rowLine(cells []string) string {
	var line strings.Builder
	line.WriteByte('|')
	for _, cell := range cells {
		line.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
	}
	return line.String()
}

func blankGrid(g *Grid) bool {
	for _, row := range g.Rows {
		if !isBlank(strings.Join(row.Cells, "")) {
			return false
		}
	}
	return true
}
