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
}

// EmbedText is what is embedded and lexically indexed for a chunk: its heading
// path and its text.
func EmbedText(text string, c Chunk) string {
	if len(c.Headings) == 0 {
		return text[c.Start:c.End]
	}
	return strings.Join(c.Headings, " > ") + "\n" + text[c.Start:c.End]
}
