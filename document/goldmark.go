package document

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// blockParser knows CommonMark's blocks and GFM's tables, and nothing that is
// inside a line: only headings need that, and hostile input makes it slow.
// Link reference definitions stay the paragraphs that they look like.
var blockParser = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(shallow{parser.NewListParser()}, 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
		util.Prioritized(shortLines{parser.NewHTMLBlockParser()}, 900),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithParagraphTransformers(
		util.Prioritized(smallTables{extension.NewTableParagraphTransformer()}, 200),
	),
)

// shallow opens no container below maxNesting others: every line visits every
// open container, and containers are visited recursively.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.Position()
	node, state := s.BlockParser.Open(parent, reader, pc)
	if node == nil || depth(parent) < maxNesting {
		return node, state
	}
	reader.SetPosition(line, segment)
	return nil, parser.NoChildren
}

func depth(n ast.Node) int {
	d := 0
	for n = n.Parent(); n != nil; n = n.Parent() {
		d++
	}
	return d
}

// smallTables leaves paragraphs alone that would make more than maxTableCells:
// goldmark fills short rows up to the width of the header.
type smallTables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t smallTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, width := node.Lines(), 0
	for i := range lines.Len() {
		segment := lines.At(i)
		width = max(width, 1+bytes.Count(segment.Value(reader.Source()), []byte{'|'}))
	}
	if width*lines.Len() <= maxTableCells {
		t.ParagraphTransformer.Transform(node, reader, pc)
	}
}

// shortLines leaves long lines to the paragraph that they look like: the
// expressions that recognise HTML take a second for each megabyte.
type shortLines struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shortLines) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); len(line) > maxHTMLLine {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}
