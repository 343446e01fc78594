package document

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// titleParser parses one heading, at most maxHeading bytes long.
var titleParser = goldmark.New(goldmark.WithExtensions(extension.Strikethrough)).Parser()

// plainText is what a reader sees of the Markdown of a heading, on one line.
func plainText(source []byte) string {
	if !bytes.ContainsAny(source, "\\`*_[]<&~!") {
		return oneLine(string(source))
	}
	source = append([]byte("# "), bytes.ReplaceAll(source, []byte("\n"), []byte(" "))...)
	var out strings.Builder
	_ = ast.Walk(titleParser.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			writePlain(&out, n, source)
		}
		return ast.WalkContinue, nil // so that Walk has no error to return
	})
	return oneLine(cleanRunes(out.String()))
}

// writePlain writes what a reader sees of an inline node itself.
func writePlain(out *strings.Builder, n ast.Node, source []byte) {
	switch n := n.(type) {
	case *ast.Text:
		value := n.Segment.Value(source)
		if !n.IsRaw() && n.Parent().Kind() != ast.KindCodeSpan {
			value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
		}
		out.Write(value)
	case *ast.String:
		out.Write(n.Value)
	case *ast.AutoLink:
		out.Write(n.Label(source))
	}
}

// oneLine collapses white space and cuts at maxHeading bytes.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxHeading {
		s = strings.ToValidUTF8(s[:maxHeading], "")
	}
	return s
}
