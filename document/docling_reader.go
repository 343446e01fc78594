package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// doclingReader walks the items in reading order.
type doclingReader struct {
	*docling
	seen      map[string]bool // refs that were visited
	depth     int             // of the list under way
	cells     int             // that tables may still have, all together
	spare     int             // bytes that they may still say again
	elements  []Element
	refs      []string // of the items that the elements were made of
	furniture []Furniture
	sizes     []Page
}

// newDoclingReader reads a file of so many bytes.
func newDoclingReader(source *docling, size int) *doclingReader {
	return &doclingReader{docling: source, seen: map[string]bool{}, cells: maxTableCells + size, spare: repeats(size)}
}

// pages takes the sizes, up to the number of pages that are there.
func (r *doclingReader) pages() {
	for _, name := range slices.Sorted(maps.Keys(r.Pages)) {
		if p := r.Pages[name]; p.Number > 0 && p.Number <= len(r.Pages) {
			r.sizes = slices.Concat(r.sizes, make([]Page, max(0, p.Number-len(r.sizes))))
			r.sizes[p.Number-1] = p.Size
		}
	}
}

// find returns the item of a reference, each once.
func (r *doclingReader) find(ref doclingRef) (*doclingItem, error) {
	path := ref.Ref + ref.Cref
	kind, number, _ := strings.Cut(strings.TrimPrefix(path, "#/"), "/")
	items := r.items(kind)
	at, err := strconv.Atoi(number)
	if err != nil || at < 0 || at >= len(items) {
		return nil, fmt.Errorf("%w: no item %q", ErrMalformed, oneLine(path))
	}
	if r.seen[path] {
		return nil, fmt.Errorf("%w: item %q is there twice", ErrMalformed, oneLine(path))
	}
	r.seen[path] = true
	return &items[at], nil
}

func (r *doclingReader) items(kind string) []doclingItem {
	switch kind {
	case "groups":
		return r.Groups
	case "texts":
		return r.Texts
	case "pictures":
		return r.Pictures
	case "tables":
		return r.Tables
	case "key_value_items":
		return r.KeyValues
	case "form_items":
		return r.Forms
	case "field_regions":
		return r.Regions
	case "field_items":
		return r.Fields
	}
	return nil
}

// maxDepth bounds items inside each other.
const maxDepth = 1000

func (r *doclingReader) children(refs []doclingRef, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: more than %d items inside each other", ErrMalformed, maxDepth)
	}
	for _, ref := range refs {
		if r.seen[ref.Ref+ref.Cref] && r.isFloating(ref) {
			continue // said with its table or picture
		}
		item, err := r.find(ref)
		if err == nil {
			err = r.item(item, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isFloating says whether a text belongs to a table or picture wherever it stands.
func (r *doclingReader) isFloating(ref doclingRef) bool {
	at, ok := strings.CutPrefix(ref.Ref+ref.Cref, "#/texts/")
	i, err := strconv.Atoi(at)
	return ok && err == nil && i < len(r.Texts) && (r.Texts[i].Label == "caption" || r.Texts[i].Label == "footnote")
}

// item reads one item and what is below it.
func (r *doclingReader) item(n *doclingItem, depth int) error {
	switch {
	case n.Layer == "invisible":
		return nil
	case n.Layer == "furniture" || n.Layer == "background" || n.Label == "page_header" || n.Label == "page_footer":
		r.aside(n)
		return r.children(n.Children, depth+1)
	case strings.HasPrefix(n.Ref, "#/tables/"):
		return r.floating(n, func(caption string) error { return r.table(n, caption, depth) })
	case strings.HasPrefix(n.Ref, "#/pictures/"):
		return r.floating(n, func(string) error { r.picture(n); return nil })
	case n.Label == "inline":
		return r.inline(n, Element{Kind: Paragraph}, depth)
	case n.Label == "list" || n.Label == "ordered_list":
		r.depth++
		defer func() { r.depth-- }()
		return r.children(n.Children, depth+1)
	}
	return r.text(n, depth)
}

// text reads an item that has text; one whose text is in an inline group below
// it takes that.
func (r *doclingReader) text(n *doclingItem, depth int) error {
	e := Element{Kind: doclingKinds[n.Label], Text: n.Text, Places: r.places(n)}
	if e.Kind == "" {
		e.Kind = Paragraph
	}
	switch n.Label {
	case "title":
		e.Level = 1
	case "section_header", "field_heading":
		e.Level = max(n.Level, 1) + 1
	case "checkbox_selected":
		e.Text = "[x] " + n.Text
	case "checkbox_unselected":
		e.Text = "[ ] " + n.Text
	case "list_item":
		e.Depth, e.Marker = max(r.depth, 1), "-"
		if n.Enumerated && n.Marker != "" {
			e.Marker = oneLine(n.Marker)
		}
	}
	rest := n.Children
	if n.Text == "" && len(rest) > 0 {
		group, err := r.find(rest[0])
		if err != nil {
			return err
		}
		rest = rest[1:]
		if group.Label != "inline" {
			if err := r.item(group, depth+1); err != nil {
				return err
			}
		} else if err := r.inline(group, e, depth); err != nil {
			return err
		}
	}
	for _, cell := range n.Graph.Cells {
		e.Text = strings.TrimSpace(e.Text + "\n" + cell.Text)
	}
	r.put(n, e)
	return r.children(rest, depth+1)
}

// doclingKinds are the kinds of labels; others are paragraphs.
var doclingKinds = map[string]Kind{
	"title": Heading, "section_header": Heading, "field_heading": Heading, "list_item": Item, "code": Code, "formula": Formula,
	"footnote": Footnote, "caption": Caption,
}

// inline joins the texts of a group into the element.
func (r *doclingReader) inline(n *doclingItem, e Element, depth int) error {
	from := len(r.elements)
	if err := r.children(n.Children, depth+1); err != nil {
		return err
	}
	var parts []string
	for _, part := range r.elements[from:] {
		parts = append(parts, part.Text)
		e.Places = append(e.Places, part.Places...)
	}
	r.elements, r.refs = r.elements[:from], r.refs[:from]
	e.Text = strings.Join(parts, " ")
	r.put(n, e)
	return nil
}

// put adds an element, unless it is empty.
func (r *doclingReader) put(n *doclingItem, e Element) {
	if e.Kind == Table || !isBlank(e.Text) {
		r.elements, r.refs = append(r.elements, e), append(r.refs, n.Ref)
	}
}

// floating reads a table or picture with its captions before and its footnotes after it.
func (r *doclingReader) floating(n *doclingItem, itself func(caption string) error) error {
	from := len(r.elements)
	if err := r.notes(n.Captions, Caption); err != nil {
		return err
	}
	var caption []string
	for _, e := range r.elements[from:] {
		caption = append(caption, e.Text)
	}
	if err := itself(strings.Join(caption, " ")); err != nil {
		return err
	}
	return r.notes(n.Footnotes, Footnote)
}

func (r *doclingReader) notes(refs []doclingRef, kind Kind) error {
	for _, ref := range refs {
		if r.seen[ref.Ref+ref.Cref] {
			continue // it stood before, in the order of the body
		}
		note, err := r.find(ref)
		if err != nil {
			return err
		}
		r.put(note, Element{Kind: kind, Text: note.Text, Places: r.places(note)})
	}
	return nil
}

// picture says what a picture shows, as far as the source knows.
func (r *doclingReader) picture(n *doclingItem) {
	text := n.Meta.Description.Text
	for _, a := range n.Annotations {
		if text == "" && a.Kind == "description" {
			text = a.Text
		}
	}
	r.put(n, Element{Kind: Figure, Text: text, Places: r.places(n)})
}

// table fills the grid, each cell in all the places that it spans, as long as that
// does not make many times as much of the file. What the table has below it that is
// in no cell comes after it.
func (r *doclingReader) table(n *doclingItem, caption string, depth int) error {
	d := n.Data
	if d.Rows < 1 || d.Columns < 1 || d.Rows > maxTableCells/d.Columns || d.Rows*d.Columns > r.cells {
		return nil
	}
	r.cells -= d.Rows * d.Columns
	g := &Grid{Caption: caption, Rows: make([]Row, d.Rows)}
	for i := range g.Rows {
		g.Rows[i].Cells = make([]string, d.Columns)
	}
	headers := make([]bool, d.Rows)
	left := maxTableCells
	said := map[string]bool{}
	for _, c := range d.Cells {
		text, err := r.cellText(c, depth)
		if err != nil {
			return err
		}
		said[text] = true
		for i := max(c.Row, 0); i < min(c.RowEnd, d.Rows); i++ {
			headers[i] = headers[i] || c.Header
			for j := max(c.Column, 0); j < min(c.ColumnEnd, d.Columns) && left > 0 && r.spare >= len(text); j++ {
				g.Rows[i].Cells[j] = text
				left--
				r.spare -= len(text)
			}
		}
	}
	g.Header = max(slices.Index(headers, false), 0)
	r.put(n, Element{Kind: Table, Table: g, Places: r.places(n)})
	return r.beside(n, said, depth)
}

// cellText is the text of a cell and of the items that a rich one has below it,
// but for what the cell's own text says already, or says of theirs.
func (r *doclingReader) cellText(c doclingCell, depth int) (string, error) {
	ref := c.Ref
	if ref == (doclingRef{}) || r.seen[ref.Ref+ref.Cref] {
		return c.Text, nil
	}
	elements, err := r.below([]doclingRef{ref}, depth)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, e := range elements {
		words := e.words()
		if r.spare -= len(words); r.spare < 0 {
			return "", fmt.Errorf("%w: tables inside of tables repeat too much", ErrMalformed)
		}
		parts = append(parts, words)
	}
	text := strings.Join(parts, " ")
	switch {
	case strings.Contains(text, c.Text):
		return text, nil
	case strings.Contains(c.Text, text):
		return c.Text, nil
	}
	return c.Text + " " + text, nil
}

// below are the elements of items, apart from those of the body.
func (r *doclingReader) below(refs []doclingRef, depth int) ([]Element, error) {
	from := len(r.elements)
	if err := r.children(refs, depth+1); err != nil {
		return nil, err
	}
	elements := slices.Clone(r.elements[from:])
	r.elements, r.refs = r.elements[:from], r.refs[:from]
	return elements, nil
}

// words are the text of an element, of a table that of its cells.
func (e Element) words() string {
	if e.Table == nil {
		return e.Text
	}
	var cells []string
	for _, row := range e.Table.Rows {
		cells = append(cells, strings.Join(row.Cells, " "))
	}
	return strings.Join(cells, " ")
}

// beside reads what a table has below it that neither was read nor is what a cell says.
func (r *doclingReader) beside(n *doclingItem, said map[string]bool, depth int) error {
	rest := slices.DeleteFunc(slices.Clone(n.Children), func(ref doclingRef) bool { return r.seen[ref.Ref+ref.Cref] })
	elements, err := r.below(rest, depth)
	if err != nil {
		return err
	}
	for _, e := range elements {
		if !said[e.words()] {
			r.elements, r.refs = append(r.elements, e), append(r.refs, n.Ref)
		}
	}
	return nil
}

// aside keeps what stands beside the text.
func (r *doclingReader) aside(n *doclingItem) {
	f := Furniture{Kind: Header, Text: strings.TrimSpace(cleanRunes(n.Text))}
	switch {
	case n.Label == "page_footer":
		f.Kind = Footer
	case n.Layer == "background":
		f.Kind = Watermark
	}
	if places := r.places(n); len(places) > 0 {
		f.Place = places[0]
	}
	if f.Text != "" {
		r.furniture = append(r.furniture, f)
	}
}

// places are those of an item, measured from the upper left corner.
func (r *doclingReader) places(n *doclingItem) []Place {
	var places []Place
	for _, p := range n.Prov {
		box := Box{p.Box.L, p.Box.T, p.Box.R, p.Box.B}
		if p.Box.Origin != "TOPLEFT" && p.Page > 0 && p.Page <= len(r.sizes) {
			height := r.sizes[p.Page-1].Height
			box.Top, box.Bottom = height-box.Top, height-box.Bottom
		}
		places = append(places, Place{Page: p.Page, Box: box, Confidence: 1})
	}
	return places
}
