package pdf

import (
	"bytes"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/document"
)

// layout makes the elements of a document of its pages, and leaves what is no
// part of the text in their furniture. The work for a page is bounded.
func layout(w *work, pages []*page) []document.Element {
	var regions []region
	for _, p := range pages {
		p.work, p.looks = w, maxLooks
		p.findRuled()
		regions = append(regions, p.findLined()...)
	}
	makeLined(w, regions)
	for _, p := range pages {
		p.makeLines()
		p.runs, p.rules = nil, nil
	}
	s := stylesOf(w, pages)
	takeFurniture(w, pages, s.body)
	s = stylesOf(w, pages) // a watermark is no heading
	var blocks []*block
	for _, p := range pages {
		b := builder{styles: s, page: p}
		for _, i := range withAlignedIn(w, ordered(w, p.items())) {
			w.did(1)
			b.add(i)
		}
		b.end()
		blocks = append(blocks, footnotes(b.blocks, p, s)...)
	}
	blocks = joinTables(w, joinPages(w, blocks))
	unhyphenate(w, blocks)
	return elements(w, blocks)
}

// withAlignedIn looks for tables in each stretch of items that stand below each
// other: where the order goes back up, a column ends.
func withAlignedIn(w *work, items []item) []item {
	var out []item
	from := 0
	for i := 1; i <= len(items); i++ {
		if i == len(items) || items[i].box.Bottom < items[i-1].box.Top-1 {
			out = append(out, withAligned(w, items[from:i])...)
			from = i
		}
	}
	return out
}

// styles is what the lines of a document have in common.
type styles struct {
	body    float64   // size of most characters
	leading float64   // between the middles of two lines of a paragraph, in sizes
	heads   []float64 // sizes of headings, the largest first
}

func stylesOf(w *work, pages []*page) styles {
	chars := map[float64]int{}
	var leads []float64
	for _, p := range pages {
		w.did(len(p.lines))
		for i, l := range p.lines {
			chars[rounded(l.size)] += len(l.text)
			if i == 0 {
				continue
			}
			before := p.lines[i-1]
			if d := (middle(l.box) - middle(before.box)) / l.size; d > 0.8 && d < 2 && abs(l.size-before.size) < 0.5 && abs(l.box.Left-before.box.Left) < 2 {
				leads = append(leads, d)
			}
		}
	}
	s := styles{body: 10, leading: 1.3}
	most := 0
	for _, size := range slices.Sorted(maps.Keys(chars)) {
		if chars[size] > most {
			s.body, most = size, chars[size]
		}
	}
	if len(leads) > 0 {
		slices.Sort(leads)
		s.leading = leads[len(leads)/3]
	}
	for _, size := range slices.Backward(slices.Sorted(maps.Keys(chars))) {
		if size >= 1.1*s.body && len(s.heads) < 5 {
			s.heads = append(s.heads, size)
		}
	}
	return s
}

func rounded(size float64) float64 { return math.Round(2*size) / 2 }

// block is an element under way.
type block struct {
	kind   document.Kind
	level  int
	lines  []*line
	left   float64 // of an item's bullet
	marker string
	table  *table
	box    document.Box
	page   int
	text   string
	places []document.Place
	sure   float64
}

// builder makes blocks of the items of one page, in order.
type builder struct {
	styles
	page    *page
	blocks  []*block
	current *block
}

func (b *builder) end() {
	if b.current != nil {
		b.current.finish(b.styles)
		b.blocks = append(b.blocks, b.current)
	}
	b.current = nil
}

func (b *builder) add(i item) {
	switch {
	case i.table != nil:
		b.end()
		b.blocks = append(b.blocks, &block{kind: document.Table, table: i.table, box: i.box, page: b.page.number, sure: 0.8})
	case i.picture:
		b.end()
		b.blocks = append(b.blocks, &block{kind: document.Figure, box: i.box, page: b.page.number, sure: 0.9})
	case b.current != nil && b.goesOn(i.line):
		b.current.lines = append(b.current.lines, i.line)
		b.current.box = union(b.current.box, i.line.box)
	default:
		b.end()
		b.current = b.begin(i.line)
	}
}

// goesOn says whether a line belongs to the block under way: it follows closely,
// in the same style, and begins nothing of its own.
func (b *builder) goesOn(l *line) bool {
	c, last := b.current, b.current.lines[len(b.current.lines)-1]
	d := middle(l.box) - middle(last.box)
	if abs(l.size-last.size) > 0.12*max(l.size, last.size) || l.mono != last.mono || d <= 0 || d > 1.3*b.leading*max(l.size, last.size) {
		return false
	}
	if c.kind == document.Code {
		return true
	}
	if l.bold != last.bold && (c.kind == document.Heading || len(c.lines) == 1 && last.bold) || markerOf(l.text) != "" || captionKind(l.text) != "" {
		return false
	}
	if c.kind == document.Item {
		return l.box.Left > c.left+1
	}
	return l.box.Left < last.box.Right && last.box.Left < l.box.Right && l.box.Left-c.lines[0].box.Left < 3*l.size
}

// begin starts a block with its first line.
func (b *builder) begin(l *line) *block {
	n := &block{kind: document.Paragraph, lines: []*line{l}, box: l.box, page: l.page, left: l.box.Left, sure: 0.9}
	switch marker := markerOf(l.text); {
	case l.mono:
		n.kind = document.Code
	case captionKind(l.text) != "":
		n.kind = document.Caption
	case l.size >= 1.1*b.body:
		n.kind, n.level = document.Heading, 1+max(0, slices.Index(b.heads, rounded(l.size)))
	case marker != "":
		n.kind, n.marker = document.Item, marker
	}
	return n
}

var (
	numbered = regexp.MustCompile(`^(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)])\s`)
	caption  = regexp.MustCompile(`^(Figure|Fig\.|Table|Chart|Diagram)\s*\d+(?:\.\d+)*\s*[:.–—-]`)
)

// markerOf is the bullet or number that a line begins with.
func markerOf(text string) string {
	if first := firstWord(text); isBullet(first) || first == "-" || first == "–" {
		return first
	}
	return strings.TrimSpace(numbered.FindString(text))
}

func firstWord(text string) string {
	first, _, _ := strings.Cut(text, " ")
	return first
}

// captionKind is what a line is the caption of, "" if it is none.
func captionKind(text string) document.Kind {
	switch word := caption.FindStringSubmatch(text); {
	case word == nil:
		return ""
	case word[1] == "Table":
		return document.Table
	}
	return document.Figure
}

// finish settles the kind and the text of a block of lines.
func (n *block) finish(s styles) {
	if len(n.lines) == 0 {
		return
	}
	texts := make([]string, len(n.lines))
	for i, l := range n.lines {
		texts[i] = l.text
	}
	if n.kind == document.Code {
		n.text = codeText(n.lines)
		return
	}
	n.text = joinLines(texts)
	if n.kind == document.Item {
		n.text = strings.TrimSpace(strings.TrimPrefix(n.text, n.marker))
	}
	words := len(strings.Fields(n.text))
	switch {
	case n.kind == document.Heading && (words > 40 || len(n.lines) > 4):
		n.kind = document.Paragraph
	case n.kind == document.Paragraph && n.allBold() && words <= 16 && !strings.ContainsAny(last(n.text), ".;,:"):
		n.kind, n.level, n.sure = document.Heading, len(s.heads)+1, 0.7
	}
}

func (n *block) allBold() bool {
	return !slices.ContainsFunc(n.lines, func(l *line) bool { return !l.bold })
}

func last(s string) string {
	r, _ := utf8.DecodeLastRuneInString(s)
	return string(r)
}

// codeText keeps lines and their indentation, by the width of a character.
func codeText(lines []*line) string {
	left := lines[0].box.Left
	for _, l := range lines {
		left = min(left, l.box.Left)
	}
	var out strings.Builder
	for i, l := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(strings.Repeat(" ", min(int(math.Round((l.box.Left-left)/(0.6*l.size))), 80)) + l.text)
	}
	return plain(out.String())
}

// joinLines joins lines with spaces; where a word is parted with a hyphen, a sign
// stands for it until all words are known.
func joinLines(lines []string) string {
	var out []byte
	for _, l := range lines {
		switch {
		case len(out) == 0 || l == "":
		case bytes.HasSuffix(out, []byte("-")) && endsInLetter(out[:len(out)-1]) && startsLower(l):
			out = utf8.AppendRune(out[:len(out)-1], parting)
		default:
			out = append(out, ' ')
		}
		out = append(out, l...)
	}
	return string(out)
}

func endsInLetter(s []byte) bool {
	r, _ := utf8.DecodeLastRune(s)
	return unicode.IsLetter(r)
}

func startsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

// elements are the blocks as a document is assembled of them.
func elements(w *work, blocks []*block) []document.Element {
	var out []document.Element
	var lefts []float64 // of the open lists
	for i, n := range blocks {
		w.did(1)
		e := document.Element{Kind: n.kind, Level: n.level, Text: plain(n.text), Marker: n.marker, Places: n.placed()}
		if n.kind == document.Item {
			for len(lefts) > 0 && lefts[len(lefts)-1] > n.left+2 {
				lefts = lefts[:len(lefts)-1]
			}
			if len(lefts) == 0 || lefts[len(lefts)-1] < n.left-2 {
				lefts = append(lefts, n.left)
			}
			e.Depth = len(lefts)
			if isBullet(n.marker) || n.marker == "–" {
				e.Marker = "-"
			}
		} else {
			lefts = nil
		}
		switch n.kind {
		case document.Table:
			e.Table = n.table.grid(tableCaption(blocks, i))
			for _, row := range e.Table.Rows {
				for j, cell := range row.Cells {
					row.Cells[j] = plain(cell)
				}
			}
			if len(n.table.places) > 0 {
				e.Places = n.table.places
			}
		case document.Caption:
			if captionKind(n.text) == document.Figure && hasPicture(blocks, i) {
				e.Kind = document.Figure
			}
		}
		out = append(out, e)
	}
	return out
}

// tableCaption is the text of a caption before or after a table.
func tableCaption(blocks []*block, i int) string {
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(blocks) && blocks[j].kind == document.Caption && captionKind(blocks[j].text) == document.Table {
			return plain(blocks[j].text)
		}
	}
	return ""
}

func hasPicture(blocks []*block, i int) bool {
	return i > 0 && blocks[i-1].kind == document.Figure || i+1 < len(blocks) && blocks[i+1].kind == document.Figure
}

// plain takes the signs around marks away that no footnote has.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == markOpen || r == markClose {
			return -1
		}
		if r == parting {
			return '-'
		}
		return r
	}, s)
}

// joinPages puts a paragraph together that goes on after a column or page ends.
func joinPages(w *work, blocks []*block) []*block {
	var out []*block
	var parts []string // of the text of the last one
	for _, n := range blocks {
		w.did(1)
		if len(out) > 0 && goesOver(out[len(out)-1], parts[len(parts)-1], n) {
			before := out[len(out)-1]
			parts = append(parts, n.text)
			before.places = append(before.placed(), n.placed()...)
			continue
		}
		finishText(out, parts)
		out, parts = append(out, n), []string{n.text}
	}
	finishText(out, parts)
	return out
}

// finishText gives the last block its text where that is of several parts.
func finishText(blocks []*block, parts []string) {
	if len(parts) > 1 {
		blocks[len(blocks)-1].text = joinLines(parts)
	}
}

// goesOver says whether a block goes on with the one before, whose text ends so.
func goesOver(before *block, end string, n *block) bool {
	return before.kind == document.Paragraph && n.kind == document.Paragraph && (n.page != before.page || n.box.Top < before.box.Top) &&
		startsLower(n.text) && !strings.ContainsAny(last(end), ".!?:")
}

// placed are the places of a block.
func (n *block) placed() []document.Place {
	if len(n.places) > 0 {
		return n.places
	}
	return []document.Place{place(n.page, n.box, n.sure)}
}
