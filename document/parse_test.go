package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestGolden runs testdata/*: "parse format=F" prints title, text (where it is
// not the input) and tree; "normalize" takes and prints quoted strings.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "normalize" {
				return normalizeQuoted(t, d)
			}
			var format string
			d.ScanArgs(t, "format", &format)
			doc, err := Parse(format, []byte(d.Input))
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			require.NoError(t, Check(doc))
			return dump(doc, d.Input)
		})
	})
}

func normalizeQuoted(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		raw, err := strconv.Unquote(strings.TrimSpace(line))
		require.NoError(t, err, "line %s", line)
		text, err := Normalize([]byte(raw))
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
			continue
		}
		fmt.Fprintf(&out, "%+q\n", text)
	}
	return out.String()
}

func dump(doc Document, input string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "title: %q\n", doc.Title)
	if doc.Text != strings.TrimSpace(input) {
		fmt.Fprintf(&out, "text:\n%s\nblocks:\n", doc.Text)
	}
	dumpBlocks(&out, doc.Text, doc.Blocks, "")
	return out.String()
}

func dumpBlocks(out *strings.Builder, text string, blocks []*Block, indent string) {
	for _, b := range blocks {
		fmt.Fprintf(out, "%s%s [%d,%d)", indent, b.Kind, b.Start, b.End)
		if b.Kind == Section {
			fmt.Fprintf(out, " %d %q", b.Level, b.Title)
		}
		if len(b.Children) == 0 {
			fmt.Fprintf(out, " %q", text[b.Start:b.End])
		}
		out.WriteByte('\n')
		dumpBlocks(out, text, b.Children, indent+"  ")
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := Parse("pdf", []byte("x"))
	require.ErrorIs(t, err, ErrUnknownFormat)
	require.ErrorContains(t, err, `"pdf"; known are docling, html, markdown, text`)
}

func TestNotUTF8(t *testing.T) {
	for _, format := range Formats() {
		_, err := Parse(format, []byte("caf\xe9 au lait"))
		require.ErrorIs(t, err, ErrNotUTF8)
		require.ErrorContains(t, err, "bad byte 0xe9 at position 3")
	}
	_, err := Normalize([]byte("a\uFFFDb")) // a replacement character is a character
	require.NoError(t, err)
}

func TestPanicIsAnError(t *testing.T) {
	_, err := guarded(func([]byte) (Document, error) { panic("boom") }, nil)
	require.ErrorContains(t, err, "boom")
	want := errors.New("plain")
	_, err = guarded(func([]byte) (Document, error) { return Document{}, want }, nil)
	require.ErrorIs(t, err, want)
}

// TestGrids runs testdata/grid/*: "grid format=F" prints the cells of the tables.
func TestGrids(t *testing.T) {
	datadriven.Walk(t, "testdata/grid", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var format string
			d.ScanArgs(t, "format", &format)
			doc, err := Parse(format, []byte(d.Input))
			require.NoError(t, err)
			require.NoError(t, Check(doc))
			var out strings.Builder
			dumpGrids(&out, doc.Text, doc.Blocks)
			return out.String()
		})
	})
}

func dumpGrids(out *strings.Builder, text string, blocks []*Block) {
	for _, b := range blocks {
		dumpGrids(out, text, b.Children)
		if b.Grid == nil {
			continue
		}
		fmt.Fprintf(out, "caption %q, header %d, columns %q\n", b.Grid.Caption, b.Grid.Header, b.Grid.Columns())
		for _, row := range b.Grid.Rows {
			fmt.Fprintf(out, "  %q of %q\n", row.Cells, text[row.Start:row.End])
		}
	}
}

// TestSpansAreBounded: few bytes make no large tree, by one table or by many, and
// what makes too many cells ends.
func TestSpansAreBounded(t *testing.T) {
	for name, source := range map[string]string{
		"much text":  `<table><tr><td colspan=1000 rowspan=90>` + strings.Repeat("x", 10_000) + strings.Repeat(`<tr><td>row</td></tr>`, 50) + `</table>`,
		"many":       strings.Repeat(`<table><tr><td colspan=1000>a<td colspan=1000>b</table>`, 1000),
		"many cells": `<table><tr><td colspan=1000 rowspan=1000>x` + strings.Repeat(`<tr><td>row</td></tr>`, 150) + strings.Repeat("<!-- -->", 50_000) + `</table>`,
	} {
		doc, err := Parse("html", []byte(source))
		require.NoError(t, err, name)
		encoded, err := doc.Encode()
		require.NoError(t, err, name)
		require.Less(t, len(encoded), 20*len(source)+100_000, name)
		require.NotEmpty(t, doc.Text, name)
	}
	doc, err := Parse("html", []byte(`<table><tr><td colspan=200>wide<tr><td>a<td>b</table>`))
	require.NoError(t, err)
	require.Len(t, doc.Blocks[0].Grid.Rows[0].Cells, 200)
}
