package document

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// markdown collects the blocks of a Markdown source. goldmark says where each
// block begins; a block then reaches to the beginning of the next one, so that
// marks that goldmark does not report (a closing fence, the line under a
// heading) are part of the block that they belong to.
type markdown struct {
	text   string
	size   int // of a window, in bytes
	blocks int
}

func parseMarkdown(source string) (Document, error) {
	return parseWindows(source, windowSize)
}

func parseWindows(source string, size int) (Document, error) {
	m := &markdown{text: source, size: size}
	var flat []*Block
	length, title := frontMatter(source)
	if length > 0 {
		start, end := trimRange(source, 0, length)
		flat = append(flat, &Block{Kind: Metadata, Start: start, End: end})
	}
	flat, err := m.windows(flat, length)
	if err != nil {
		return Document{}, err
	}
	doc := Document{Text: source, Blocks: nest(flat)}
	if doc.Title = firstTitle(doc.Blocks); doc.Title == "" {
		doc.Title = title
	}
	return doc, nil
}

// windows parses the source from position at on, about m.size bytes at a
// time. The last block of a window may go on after it: the next window begins
// with it. A block that fills its window is cut there, but for fenced code: its
// end is looked for, so that the text after it is not taken for code.
func (m *markdown) windows(flat []*Block, at int) ([]*Block, error) {
	for at < len(m.text) {
		end := lineEnd(m.text, min(at+m.size, len(m.text)-1))
		blocks := m.window(at, end)
		at = end
		if last := len(blocks) - 1; last > 0 && end < len(m.text) {
			at = lineStart(m.text, blocks[last].Start)
			blocks = blocks[:last]
		} else if last == 0 && blocks[0].Kind == Code {
			at = max(end, fenceEnd(m.text, blocks[0].Start))
			_, blocks[0].End = trimRange(m.text, blocks[0].Start, at)
		}
		flat = append(flat, blocks...)
		if m.blocks > maxBlocks {
			return nil, ErrTooManyBlocks
		}
	}
	return flat, nil
}

// fenceEnd returns the position after the code fence that opens at start, and
// start if none does.
func fenceEnd(text string, start int) int {
	mark := text[start : start+1]
	fence := text[start : len(text)-len(strings.TrimLeft(text[start:], mark))]
	if len(fence) < 3 || mark != "`" && mark != "~" {
		return start
	}
	for at := lineEnd(text, start); at < len(text); at = lineEnd(text, at) {
		line := strings.TrimLeft(text[at:lineEnd(text, at)], " ")
		if strings.HasPrefix(line, fence) && isBlank(strings.TrimLeft(line, mark)) {
			return lineEnd(text, at)
		}
	}
	return len(text)
}

// window is a part of the source: [base, base + len(source)).
type window struct {
	*markdown
	base   int
	source []byte
}

func (m *markdown) window(start, end int) []*Block {
	w := window{m, start, []byte(m.text[start:end])}
	return w.children(blockParser.Parse(text.NewReader(w.source)), start, end)
}

// children converts the children of a node that has the range [start, end).
func (w window) children(parent ast.Node, start, end int) []*Block {
	nodes, starts := w.starts(parent, start, end)
	var blocks []*Block
	for i, n := range nodes {
		until := end
		if i+1 < len(nodes) {
			until = starts[i+1]
		}
		if s, e := trimRange(w.text, starts[i], until); s < e {
			blocks = append(blocks, w.block(n, s, e))
		}
	}
	return blocks
}

// starts returns the children of a node, and where the line begins on which
// each begins. Of two on one line it leaves out the second.
func (w window) starts(parent ast.Node, start, end int) (nodes []ast.Node, starts []int) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		at := start
		if parent.Parent() != nil || len(nodes) > 0 {
			at = max(start, lineStart(w.text, min(max(start, w.base+position(n)), end)))
		}
		if len(starts) == 0 || at > starts[len(starts)-1] {
			nodes, starts = append(nodes, n), append(starts, at)
		}
	}
	return nodes, starts
}

func (w window) block(n ast.Node, start, end int) *Block {
	w.blocks++
	b := &Block{Kind: kindOf(n), Start: start, End: end}
	switch {
	case b.Kind == Heading && (n.Parent().Parent() != nil || end-start > maxHeading):
		b.Kind = Paragraph
	case b.Kind == Heading:
		b.Level = n.(*ast.Heading).Level
		b.Title = plainText(n.Lines().Value(w.source))
	case b.Kind == List || b.Kind == Item || b.Kind == Quote:
		b.Children = w.children(n, start, end)
	case b.Kind == Table:
		b.Grid = w.grid(n, end)
	}
	return b
}

// grid reads the cells of a table: its header and the rows below it, each a line.
func (w window) grid(n ast.Node, end int) *Grid {
	g := &Grid{Header: 1}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		at := w.rowStart(row)
		r := Row{}
		r.Start, r.End = trimRange(w.text, at, min(lineEnd(w.text, at), end))
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			source := strings.TrimSpace(string(cell.Lines().Value(w.source)))
			r.Cells = append(r.Cells, strings.ReplaceAll(source, `\|`, "|"))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

// rowStart returns where a row begins: at the bar before its first cell, if there is one.
func (w window) rowStart(row ast.Node) int {
	at := row.Pos()
	if cell := row.FirstChild(); cell != nil && cell.Pos() >= 0 {
		at = cell.Pos()
	}
	at += w.base
	if before := strings.TrimRight(w.text[:at], " \t"); strings.HasSuffix(before, "|") {
		return len(before) - 1
	}
	return at
}

func kindOf(n ast.Node) Kind {
	switch n.Kind() {
	case ast.KindHeading:
		return Heading
	case ast.KindList:
		return List
	case ast.KindListItem:
		return Item
	case ast.KindBlockquote:
		return Quote
	case ast.KindFencedCodeBlock, ast.KindCodeBlock:
		return Code
	case tables.KindTable:
		return Table
	}
	return Paragraph // thematic breaks and HTML blocks too
}

// position returns a position on the first line of n. goldmark gives a table
// the position of the paragraph before it, if there is one; its cells know better.
func position(n ast.Node) int {
	if header := n.FirstChild(); n.Kind() == tables.KindTable && header.FirstChild().Pos() >= 0 {
		return header.FirstChild().Pos()
	}
	return n.Pos()
}
