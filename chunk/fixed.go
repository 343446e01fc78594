package chunk

import (
	"unicode/utf8"

	"sluice/document"
)

const fixedCharacters = 1000

// fixed is the baseline of comparisons: windows of 1,000 characters, without
// overlap or regard to anything, and without heading paths.
type fixed struct{}

func (fixed) Version() string { return "fixed/1" }

func (fixed) Chunk(d document.Document) []Chunk {
	var chunks []Chunk
	for at := 0; at < len(d.Text); {
		end := at
		for n := 0; n < fixedCharacters && end < len(d.Text); n++ {
			_, width := utf8.DecodeRuneInString(d.Text[end:])
			end += width
		}
		if start, until := trim(d.Text, at, end); start < until {
			chunks = append(chunks, Chunk{Start: start, End: until})
		}
		at = end
	}
	return chunks
}
