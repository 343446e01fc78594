// Package document turns formats into a normalised text and a tree of blocks
// over it. docs/formats/text.md states the normalisation and what each format
// becomes.
package document

// Kind is what a block is.
type Kind string

// Kinds of blocks.
const (
	Section   Kind = "section" // a heading and what is below it
	Heading   Kind = "heading"
	Paragraph Kind = "paragraph"
	List      Kind = "list"
	Item      Kind = "item"
	Table     Kind = "table"
	Code      Kind = "code"
	Quote     Kind = "quote"
	Metadata  Kind = "metadata" // front matter
)

// Block is a node of the tree: the range [Start, End) of the normalised text,
// in bytes, with its children inside it in order. Check states what holds.
type Block struct {
	Kind     Kind
	Level    int    // of a section or heading, 1 … 6
	Title    string // of a section or heading: its plain text, one line
	Start    int
	End      int
	Children []*Block
}

// Document is a parsed document.
type Document struct {
	Format string
	Title  string // from the document itself, "" if it has none
	Text   string // normalised
	Blocks []*Block
}
