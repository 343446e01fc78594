package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Check reports the first violation of what every parsed document keeps:
//   - its text is normalised;
//   - every block is a non-empty range that neither begins nor ends in white
//     space or inside a character;
//   - children lie inside their parent, in order, without overlap;
//   - only sections, lists, items and quotes have children; a list has items only;
//   - a section begins with its heading, of its level; headings are nowhere else;
//     sections lie in sections of a lower level or at the top, after the body;
//   - the rows of a table lie in it, in order, each on one line;
//   - every character but white space lies in a block of the top level, inside a
//     section in one of its children, and so inside a list, item or quote, but
//     for marks before its first child.
func Check(d Document) error {
	again, err := Normalize([]byte(d.Text))
	if err != nil {
		return err
	}
	if again != d.Text {
		return errors.New("the text is not normalised")
	}
	return checkCover(d.Text, &Block{Kind: Section, End: len(d.Text), Children: d.Blocks})
}

// checkCover checks the children of a section, or of the whole document.
func checkCover(text string, parent *Block) error {
	if err := checkChildren(text, parent, parent.Start); err != nil {
		return err
	}
	return checkOrder(parent)
}

// checkChildren checks each child, and that together they leave out nothing
// but white space from position at on.
func checkChildren(text string, parent *Block, at int) error {
	for _, b := range parent.Children {
		if err := checkBlock(text, parent, b); err != nil {
			return err
		}
		if b.Start < at {
			return violation(b, "overlaps or precedes what is before it")
		}
		if !isBlank(text[at:b.Start]) {
			return violation(b, "leaves out %q before it", text[at:b.Start])
		}
		at = b.End
	}
	if !isBlank(text[at:parent.End]) {
		return violation(parent, "leaves out %q at its end", text[at:parent.End])
	}
	return nil
}

func checkBlock(text string, parent, b *Block) error {
	switch {
	case b == nil:
		return violation(parent, "has a child that is none")
	case b.Start < parent.Start || b.End > parent.End || b.Start >= b.End:
		return violation(b, "is empty or outside of its parent")
	case !utf8.RuneStart(text[b.Start]) || b.End < len(text) && !utf8.RuneStart(text[b.End]):
		return violation(b, "begins or ends inside a character")
	}
	if s, e := trimRange(text, b.Start, b.End); s != b.Start || e != b.End {
		return violation(b, "begins or ends in white space")
	}
	switch b.Kind {
	case Section:
		return checkSection(text, parent, b)
	case List, Item, Quote:
		return checkContainer(text, b)
	case Heading, Paragraph, Table, Code, Metadata, Figure, Caption, Formula, Footnote:
		if len(b.Children) > 0 {
			return violation(b, "has children")
		}
		return checkRows(text, b)
	}
	return violation(b, "is of an unknown kind")
}

// checkRows checks that the rows of a table lie in it, in order.
func checkRows(text string, b *Block) error {
	if b.Grid == nil {
		return nil
	}
	at := b.Start
	for _, row := range b.Grid.Rows {
		if row.Start < at || row.End < row.Start || row.End > b.End {
			return violation(b, "has the row [%d, %d) out of order", row.Start, row.End)
		}
		if strings.Contains(text[row.Start:row.End], "\n") {
			return violation(b, "has the row [%d, %d) on several lines", row.Start, row.End)
		}
		at = row.End
	}
	if b.Kind != Table || len(b.Grid.Rows) == 0 || b.Grid.Header > len(b.Grid.Rows) {
		return violation(b, "has a grid that is none")
	}
	return nil
}

func checkSection(text string, parent, b *Block) error {
	switch {
	case b.Level < 1 || b.Level > 6 || b.Level <= parent.Level:
		return violation(b, "has level %d below level %d", b.Level, parent.Level)
	case len(b.Children) == 0 || b.Children[0].Kind != Heading || b.Children[0].Level != b.Level:
		return violation(b, "does not begin with a heading of its level")
	case b.Children[0].Start != b.Start:
		return violation(b, "does not begin where its heading does")
	}
	return checkCover(text, b)
}

// checkOrder checks that a section's heading is its only one, and that its
// sections come last.
func checkOrder(parent *Block) error {
	for i, c := range parent.Children {
		if c.Kind == Heading && (i > 0 || parent.Level == 0) {
			return violation(c, "is not at the start of a section")
		}
		if i > 0 && parent.Children[i-1].Kind == Section && c.Kind != Section {
			return violation(c, "is body after a section")
		}
	}
	return nil
}

func checkContainer(text string, b *Block) error {
	for _, c := range b.Children {
		if (c.Kind == Item) != (b.Kind == List) || c.Kind == Section || c.Kind == Heading {
			return violation(c, "lies in a %s", b.Kind)
		}
	}
	if len(b.Children) == 0 {
		return nil
	}
	return checkChildren(text, b, b.Children[0].Start)
}

func violation(b *Block, format string, args ...any) error {
	return fmt.Errorf("%s [%d, %d) %s", b.Kind, b.Start, b.End, fmt.Sprintf(format, args...))
}
