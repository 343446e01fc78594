package document

import (
	"encoding/json"
	"fmt"
)

// tree is what Encode keeps of a document: all but its text.
type tree struct {
	Format    string      `json:"format"`
	Title     string      `json:"title,omitempty"`
	Blocks    []*Block    `json:"blocks"`
	Furniture []Furniture `json:"furniture,omitempty"`
	Pages     []Page      `json:"pages,omitempty"`
}

// Encode returns all of a document but its text, as docs/formats/text.md states
// it: with the text beside it, other chunkers need no parser.
func (d Document) Encode() ([]byte, error) {
	return json.Marshal(tree{d.Format, d.Title, d.Blocks, d.Furniture, d.Pages})
}

// Decode puts a document together from what Encode returned and its text. It
// fails where Check does.
func Decode(text string, encoded []byte) (Document, error) {
	var t tree
	if err := json.Unmarshal(encoded, &t); err != nil {
		return Document{}, fmt.Errorf("decoding a tree: %w", err)
	}
	d := Document{Format: t.Format, Title: t.Title, Text: text, Blocks: t.Blocks, Furniture: t.Furniture, Pages: t.Pages}
	if err := Check(d); err != nil {
		return Document{}, fmt.Errorf("decoding a tree: %w", err)
	}
	return d, nil
}
