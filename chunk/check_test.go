package chunk

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"sluice/document"
)

// check reports the first violation of what every chunker of version 1 keeps:
// chunks are in order, disjoint, within the limits, trimmed, cut between
// characters; every character but white space is in a chunk or in the heading
// of a section that has something below it; paths are those of the sections.
func check(d document.Document, chunks []Chunk) error {
	bare := headings(d.Blocks)
	at := 0
	for i, c := range chunks {
		if c.Start < at || c.Start >= c.End || c.End > len(d.Text) {
			return fmt.Errorf("chunk %d [%d,%d) is empty or out of order after %d", i, c.Start, c.End, at)
		}
		s := d.Text[c.Start:c.End]
		if strings.TrimSpace(s) != s || !utf8.ValidString(s) {
			return fmt.Errorf("chunk %d %q is not trimmed or cuts a character", i, s)
		}
		if n := measure(s, usual); !n.fits(len(s), usual.beside(c.Headings)) {
			return fmt.Errorf("chunk %d [%d,%d) has %d words, %d pieces", i, c.Start, c.End, n.words, n.pieces)
		}
		if want := path(d.Blocks, c.Start); !slices.Equal(want, c.Headings) {
			return fmt.Errorf("chunk %d [%d,%d) has path %q, not %q", i, c.Start, c.End, c.Headings, want)
		}
		if err := covered(d.Text, at, c.Start, bare); err != nil {
			return err
		}
		at = c.End
	}
	return covered(d.Text, at, len(d.Text), bare)
}

// headings maps the start of each heading that has something below it to its end.
func headings(blocks []*document.Block) map[int]int {
	found := map[int]int{}
	for _, b := range blocks {
		if b.Kind == document.Section && len(b.Children) > 1 {
			found[b.Children[0].Start] = b.Children[0].End
			for start, end := range headings(b.Children) {
				found[start] = end
			}
		}
	}
	return found
}

// covered says whether [at, until) is white space and whole headings.
func covered(text string, at, until int, headings map[int]int) error {
	for {
		at += len(text[at:until]) - len(strings.TrimSpace(text[at:until]+"x")) + 1
		if at >= until {
			return nil
		}
		end, ok := headings[at]
		if !ok || end > until {
			return fmt.Errorf("%q is in no chunk", text[at:until])
		}
		at = end
	}
}

// path is the titles of the sections around position at, without that of a
// section which is nothing but its heading.
func path(blocks []*document.Block, at int) []string {
	i := sort.Search(len(blocks), func(i int) bool { return blocks[i].End > at })
	if i == len(blocks) || blocks[i].Kind != document.Section || len(blocks[i].Children) == 1 {
		return nil
	}
	below := path(blocks[i].Children, at)
	if blocks[i].Title == "" {
		return below
	}
	return append([]string{blocks[i].Title}, below...)
}
