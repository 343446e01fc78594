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
	Figure    Kind = "figure"   // what is said of a picture
	Caption   Kind = "caption"  // of the table or figure before it or after it
	Formula   Kind = "formula"
	Footnote  Kind = "footnote" // after the block that it belongs to
	Header    Kind = "header"   // of a page, as Footer and Watermark: furniture only
	Footer    Kind = "footer"
	Watermark Kind = "watermark"
)

// Block is a node of the tree: the range [Start, End) of the normalised text,
// in bytes, with its children inside it in reading order. Check states what holds.
type Block struct {
	Kind     Kind     `json:"kind"`
	Level    int      `json:"level,omitempty"` // of a section or heading, 1 … 6
	Title    string   `json:"title,omitempty"` // of a section or heading: its plain text, one line
	Start    int      `json:"start"`
	End      int      `json:"end"`
	Children []*Block `json:"children,omitempty"`
	Places   []Place  `json:"places,omitempty"` // where it stands on pages; none: the format has none
	Grid     *Grid    `json:"grid,omitempty"`   // of a table whose cells are known
}

// Document is a parsed document.
type Document struct {
	Format    string
	Title     string // from the document itself, "" if it has none
	Text      string // normalised
	Blocks    []*Block
	Furniture []Furniture // headers, footers and watermarks: no part of the text
	Pages     []Page      // none: the format has none
}
