package chunk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"sluice/document"
)

// own are the formats that have chunkers of their own.
var own = []string{"html", "markdown", "text"}

// TestGolden runs testdata/golden/*: "chunk format=F" prints the chunks, with
// "repeat=N" of a text in which every "{…}" stands N times.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			format, repeat := "markdown", 1
			d.MaybeScanArgs(t, "format", &format)
			d.MaybeScanArgs(t, "repeat", &repeat)
			doc, chunks := parseAndChunk(t, format, expand(d.Input, repeat))
			require.NoError(t, check(doc, chunks))
			return dump(doc.Text, chunks)
		})
	})
}

func expand(s string, n int) string {
	for {
		before, rest, ok := strings.Cut(s, "{")
		inner, after, ok2 := strings.Cut(rest, "}")
		if !ok || !ok2 {
			return s
		}
		s = before + strings.Repeat(inner, n) + after
	}
}

func parseAndChunk(t testing.TB, format, source string) (document.Document, []Chunk) {
	t.Helper()
	doc, err := document.Parse(format, []byte(source))
	require.NoError(t, err)
	chunker := For(format)
	require.Equal(t, format+"/1", chunker.Version())
	return doc, chunker.Chunk(doc)
}

func dump(text string, chunks []Chunk) string {
	var out strings.Builder
	for _, c := range chunks {
		s := text[c.Start:c.End]
		n := measure(s, usual)
		if r := []rune(s); len(r) > 80 {
			s = fmt.Sprintf("%s … %s", string(r[:40]), string(r[len(r)-40:]))
		}
		fmt.Fprintf(&out, "[%d,%d) %d words, %d pieces, %q: %q\n", c.Start, c.End, n.words, n.pieces, c.Headings, s)
	}
	return out.String()
}

func TestEmbedText(t *testing.T) {
	require.Equal(t, "A > B\nbody", EmbedText("xbody", Chunk{Start: 1, End: 5, Headings: []string{"A", "B"}}))
	require.Equal(t, "body", EmbedText("xbody", Chunk{Start: 1, End: 5}))
}

func TestEmptyDocumentHasNoChunks(t *testing.T) {
	for _, format := range own {
		_, chunks := parseAndChunk(t, format, " \n")
		require.Empty(t, chunks)
	}
}
