package chunk

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
)

// A table that says much for each row takes no more memory than its size allows,
// whatever is said again: one long header, many, a caption, headers in many rows.
func TestRepeatedHeaders(t *testing.T) {
	const size, rows = 1 << 18, 1 << 11
	markdown := func(header string) string {
		columns := strings.Count(header, "|") + 1
		row := strings.Repeat("| 1 ", columns) + "|\n"
		return "| " + header + " |\n|" + strings.Repeat(" --- |", columns) + "\n" + strings.Repeat(row, rows)
	}
	html := func(above string) string {
		return "<table>" + above + strings.Repeat("<tr><td>1<td>2", rows) + "</table>"
	}
	var headers strings.Builder
	for i := range rows {
		fmt.Fprintf(&headers, "<tr><th>%0*d<th>b", size/rows, i)
	}
	long := strings.Repeat("header ", size/7)
	for name, table := range map[string]struct{ format, text string }{
		"one header":      {"markdown", markdown(long)},
		"many headers":    {"markdown", markdown(strings.TrimSuffix(strings.Repeat(strings.Repeat("h", size/32)+" | ", 32), " | "))},
		"equal headers":   {"html", html("<tr><th>" + long + "<th>" + long)},
		"a caption":       {"html", html("<caption>" + long + "</caption>")},
		"rows of headers": {"html", html(headers.String())},
		"many small ones": {"markdown", strings.Repeat("| "+strings.Repeat("header ", 150)+"|\n| --- |\n"+strings.Repeat("|1|\n", 250)+"\n", 128)},
	} {
		doc, err := document.Parse(table.format, []byte(table.text))
		require.NoError(t, err, name)
		for _, chunker := range []string{"structure/1", PlanVersion} {
			c, err := Named(chunker)
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			chunks := c.Chunk(doc)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(512*len(table.text)), "%s, %s: bytes allocated", name, chunker)
			said := 0
			for _, c := range chunks {
				said += len(c.Index)
			}
			require.Less(t, said, (maxRepeated+2)*len(table.text), "%s, %s: bytes in words", name, chunker)
			require.NoError(t, checkAny(doc, chunks))
		}
	}
}

// said is what a row is in words, as docs/formats/chunks.md states it.
func said(names, cells []string) string {
	name := func(i int) string {
		if i < len(names) {
			return strings.TrimSuffix(names[i], ":")
		}
		return ""
	}
	var parts []string
	for i, cell := range cells {
		if cell == "" || i > 0 && cell == cells[i-1] && name(i) == name(i-1) {
			continue
		}
		if name(i) != "" {
			cell = name(i) + ": " + cell
		}
		parts = append(parts, cell)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.TrimRight(strings.Join(parts, "; "), ".") + "."
}

// Rows in words are what the format says, but where they fit into no chunk.
func TestRowsInWords(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	some := func(n int) (texts []string) {
		for range n {
			choice := []string{"", "a", "a:", "b", "c.", "...", strings.Repeat("w", random.IntN(2*maxBytes)), strings.Repeat(".", maxBytes)}
			texts = append(texts, choice[random.IntN(len(choice))])
		}
		return texts
	}
	for range 3000 {
		header, cells := some(random.IntN(5)), some(random.IntN(6))
		want := said(header, cells)
		got := columnsOf(&document.Grid{Header: 1, Rows: []document.Row{{Cells: header}}}).sentence(cells)
		if len(want) > maxBytes {
			require.Greater(t, len(got), maxBytes, "seed %d", seed)
		} else {
			require.Equal(t, want, got, "seed %d", seed)
		}
	}
}
