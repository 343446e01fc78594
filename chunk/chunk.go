// Package chunk cuts a document's text into what is embedded and found.
// docs/formats/chunks.md states the rules of each version.
package chunk

import "strings"

// Chunk is the range [Start, End) of the normalised text, in bytes, with the
// titles of the sections it is in, outermost first.
type Chunk struct {
	Start    int
	End      int
	Headings []string
	Index    string // what it is found by in place of its text, as a table by its rows in words; "": its text
}

// IndexText is what a chunk is found by, without its heading path.
func IndexText(text string, c Chunk) string {
	if c.Index != "" {
		return c.Index
	}
	return text[c.Start:c.End]
}

// EmbedText is what is embedded for a chunk: its heading path and what it is
// found by.
func EmbedText(text string, c Chunk) string {
	if len(c.Headings) == 0 {
		return IndexText(text, c)
	}
	return strings.Join(c.Headings, " > ") + "\n" + IndexText(text, c)
}
