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
	blocks int
}

func parseMarkdown(source string) (Document, error) {
	m := &markdown{text: source}
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
	doc := Document{Text: source, Blocks: nest(flat, m.title)}
	if doc.Title = firstTitle(doc.Blocks); doc.Title == "" {
		doc.Title = title
	}
	return doc, nil
}

// windows parses the source from position at on, about windowSize bytes at a
// time. The last block of a window may go on after it: the next window begins
// with it, unless it fills its window.
func (m *markdown) windows(flat []*Block, at int) ([]*Block, error) {
	for at < len(m.text) {
		end := lineEnd(m.text, min(at+windowSize, len(m.text)-1))
		blocks := m.window(at, end)
		at = end
		if last := len(blocks) - 1; last > 0 && end < len(m.text) {
			at = lineStart(m.text, blocks[last].Start)
			blocks = blocks[:last]
		}
		flat = append(flat, blocks...)
		if m.blocks > maxBlocks {
			return nil, ErrTooManyBlocks
		}
	}
	return flat, nil
}

func (m *markdown) window(start, end int) []*Block {
	root := blockParser.Parse(text.NewReader([]byte(m.text[start:end])))
	return m.children(root, start, start, end)
}

// children converts the children of a node that has the range [start, end);
// base is the position of the window.
func (m *markdown) children(parent ast.Node, base, start, end int) []*Block {
	var nodes []ast.Node
	var starts []int
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		at := max(start, lineStart(m.text, min(base+position(n), end)))
		if parent.Parent() == nil && len(nodes) == 0 {
			at = start
		}
		if len(starts) == 0 || at > starts[len(starts)-1] {
			nodes, starts = append(nodes, n), append(starts, at)
		}
	}
	var blocks []*Block
	for i, n := range nodes {
		until := end
		if i+1 < len(nodes) {
			until = starts[i+1]
		}
		if s, e := trimRange(m.text, starts[i], until); s < e {
			blocks = append(blocks, m.block(n, base, s, e))
		}
	}
	return blocks
}

func (m *markdown) block(n ast.Node, base, start, end int) *Block {
	m.blocks++
	b := &Block{Kind: kindOf(n), Start: start, End: end}
	switch {
	case b.Kind == Heading && (n.Parent().Parent() != nil || end-start > maxHeading):
		b.Kind = Paragraph
	case b.Kind == Heading:
		b.Level = n.(*ast.Heading).Level
	case b.Kind == List || b.Kind == Item || b.Kind == Quote:
		b.Children = m.children(n, base, start, end)
	}
	return b
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
	if n.Kind() == tables.KindTable && n.FirstChild() != nil && n.FirstChild().FirstChild() != nil {
		return n.FirstChild().FirstChild().Pos()
	}
	return n.Pos()
}

// title is the plain text of a heading.
func (m *markdown) title(b *Block) string {
	source := []byte(m.text[b.Start:b.End])
	var out strings.Builder
	_ = ast.Walk(titleParser.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			writePlain(&out, n, source)
		}
		return ast.WalkContinue, nil
	})
	return oneLine(out.String())
}
