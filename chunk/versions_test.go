package chunk

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"sluice/document"
)

// TestVersions runs testdata/versions/*: "chunk by=NAME format=F" prints the
// chunks of that chunker, and what they are found by if that is not their text.
func TestVersions(t *testing.T) {
	datadriven.Walk(t, "testdata/versions", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			format, repeat, by := "markdown", 1, ""
			d.MaybeScanArgs(t, "format", &format)
			d.MaybeScanArgs(t, "repeat", &repeat)
			d.ScanArgs(t, "by", &by)
			doc, err := document.Parse(format, []byte(expand(d.Input, repeat)))
			require.NoError(t, err)
			chunker, err := Named(by)
			require.NoError(t, err)
			chunks := chunker.Chunk(doc)
			require.NoError(t, checkAny(doc, chunks))
			return dumpIndexed(doc.Text, chunks)
		})
	})
}

func dumpIndexed(text string, chunks []Chunk) string {
	var out strings.Builder
	for _, c := range chunks {
		out.WriteString(dump(text, []Chunk{c}))
		for line := range strings.Lines(c.Index) {
			fmt.Fprintf(&out, "  index: %q\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return out.String()
}

// checkAny reports the first violation of what every chunker keeps: chunks
// begin in order, are trimmed and cut between characters, and every character
// but white space is in one or in a heading that has something below it.
func checkAny(d document.Document, chunks []Chunk) error {
	bare := headings(d.Blocks)
	start, at := 0, 0
	for i, c := range chunks {
		if c.Start < start || c.Start >= c.End || c.End > len(d.Text) {
			return fmt.Errorf("chunk %d [%d,%d) is empty or begins before %d", i, c.Start, c.End, start)
		}
		if s := d.Text[c.Start:c.End]; strings.TrimSpace(s) != s || !utf8.ValidString(s) {
			return fmt.Errorf("chunk %d %q is not trimmed or cuts a character", i, s)
		}
		if at < c.Start {
			if err := covered(d.Text, at, c.Start, bare); err != nil {
				return err
			}
		}
		start, at = c.Start, max(at, c.End)
	}
	return covered(d.Text, at, len(d.Text), bare)
}

// FuzzVersions checks every chunker on whatever the parsers make of the input.
func FuzzVersions(f *testing.F) {
	formats, names := own, Names()
	for i := range names {
		f.Add(uint(i%3), uint(i), uint(40), "# a\n\n{b c d e. }\n\n## x\n\n|k|v|\n|-|-|\n{|1|two three|\n}\n\nso:\n\n- {y. }\n")
		f.Add(uint(0), uint(i), uint(40), "<h1>a</h1><table><tr><th>k<th>v</tr>{<tr><td rowspan=2>y<td colspan=3>z</tr>}</table>")
	}
	f.Fuzz(func(t *testing.T, format, name, repeat uint, source string) {
		doc, err := document.Parse(formats[format%uint(len(formats))], []byte(expandOnce(source, int(repeat%300))))
		if err != nil {
			return
		}
		chunker, err := Named(names[name%uint(len(names))])
		require.NoError(t, err)
		chunks := chunker.Chunk(doc)
		require.NoError(t, checkAny(doc, chunks))
		require.Equal(t, chunks, chunker.Chunk(doc), "the chunker is no pure function")
		encoded, err := doc.Encode()
		require.NoError(t, err)
		again, err := document.Decode(doc.Text, encoded)
		require.NoError(t, err)
		require.Equal(t, chunks, chunker.Chunk(again), "the tree is not kept whole")
	})
}

// TestCorporaByVersion: every chunker keeps what all do, on real documents.
func TestCorporaByVersion(t *testing.T) {
	for _, name := range Names() {
		chunker, err := Named(name)
		require.NoError(t, err)
		chunks := 0
		for _, s := range append(multiCorpus(t, "markdown", "md"), multiCorpus(t, "html", "html")...) {
			doc, err := document.Parse(s.format, s.raw)
			require.NoError(t, err)
			found := chunker.Chunk(doc)
			require.NoError(t, checkAny(doc, found), "%s: %s", name, s.name)
			chunks += len(found)
		}
		t.Logf("%s: %d chunks", name, chunks)
	}
}
