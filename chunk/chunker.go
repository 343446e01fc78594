package chunk

import (
	"fmt"
	"slices"
	"strings"

	"sluice/document"
)

// Chunker cuts documents of one format. It is a pure function: what a version
// makes of a document never changes.
type Chunker interface {
	// Version names format and rules, e.g. "markdown/1".
	Version() string
	// Chunk returns chunks in order, without overlap. Every character of the
	// text but white space is in a chunk or in a heading.
	Chunk(d document.Document) []Chunk
}

// For returns the present chunker of a format, or document.ErrUnknownFormat.
func For(format string) (Chunker, error) {
	if !slices.Contains(document.Formats(), format) {
		return nil, fmt.Errorf("%w %q; known are %s", document.ErrUnknownFormat, format, strings.Join(document.Formats(), ", "))
	}
	return structural{version: format + "/1"}, nil
}

// structural cuts along the tree: sections, then blocks, then sentences, words
// and characters, each only where what is above does not fit.
type structural struct{ version string }

func (c structural) Version() string { return c.version }

func (c structural) Chunk(d document.Document) []Chunk {
	w := &walk{text: d.Text}
	w.section(d.Blocks, nil)
	return w.chunks
}

// walk collects the chunks of one document.
type walk struct {
	text   string
	chunks []Chunk
}

// section packs the body of a section and then goes into its subsections. A
// heading is left to the paths of the chunks below it; if there are none, it
// is a chunk itself, or its words could never be found.
func (w *walk) section(blocks []*document.Block, path []string) {
	p := packer{walk: w, path: path, pieces: budget(path)}
	for _, b := range blocks {
		switch {
		case b.Kind == document.Section && len(b.Children) == 1:
			p.block(b.Children[0])
			p.flush()
		case b.Kind == document.Section:
			p.flush()
			w.section(b.Children, extend(path, b.Title))
		case b.Kind == document.Metadata:
			p.block(b)
			p.flush()
		case b.Kind != document.Heading:
			p.block(b)
		}
	}
	p.flush()
}

func extend(path []string, title string) []string {
	if title == "" {
		return path
	}
	return append(slices.Clip(path), title)
}
