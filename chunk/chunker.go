package chunk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/document"
)

// Chunker cuts documents. It is a pure function: what a version makes of a
// document never changes.
type Chunker interface {
	// Version is the chunker's name: its rules and their version, e.g. "markdown/1".
	Version() string
	// Chunk returns chunks in order of their beginnings. Every character of the
	// text but white space is in a chunk or in a heading.
	Chunk(d document.Document) []Chunk
}

// ErrUnknown means that no chunker has the name.
var ErrUnknown = errors.New("unknown chunker")

// named are all chunkers. Names are never given again, and none is taken away:
// stored documents carry them.
var named = []Chunker{
	fixed{},
	structural{version: "html/1"},
	structural{version: "markdown/1"},
	structural{version: "markdown/2", overlap: 30},
	plan{},
	structural{version: "text/1"},
	structure{},
}

// Named returns the chunker of that name, or ErrUnknown.
func Named(name string) (Chunker, error) {
	for _, c := range named {
		if c.Version() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w %q; known are %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// Names lists the names of all chunkers, sorted.
func Names() []string {
	names := make([]string, len(named))
	for i, c := range named {
		names[i] = c.Version()
	}
	slices.Sort(names)
	return names
}

// For returns the chunker of a format where the collection names none: that of
// the format's own name, or else structure/1.
func For(format string) Chunker {
	if c, err := Named(format + "/1"); err == nil {
		return c
	}
	return structure{}
}

// structural cuts along the tree: sections, then blocks, then sentences, words
// and characters, each only where what is above does not fit.
type structural struct {
	version string
	overlap int // words that a chunk may begin with of the one before it
}

func (c structural) Version() string { return c.version }

func (c structural) Chunk(d document.Document) []Chunk {
	w := newWalk(d.Text)
	w.overlap = c.overlap
	w.section(d.Blocks, nil)
	return w.chunks
}

// walk collects the chunks of one document.
type walk struct {
	text    string
	overlap int               // see structural
	spare   int               // bytes that tables may say beyond their own
	tables  []*document.Block // that are packed whole and found by their rows in words
	chunks  []Chunk
}

// maxRepeated is how many times as much as its text the tables of a document may
// say in words.
const maxRepeated = 16

func newWalk(text string) *walk {
	return &walk{text: text, spare: maxRepeated * (len(text) + 4<<10)}
}

// section packs the body of a section and then goes into its subsections. A
// heading is left to the paths of the chunks below it; if there are none, it
// is a chunk itself, or its words could never be found.
func (w *walk) section(blocks []*document.Block, path []string) {
	p := packer{walk: w, path: path, limits: usual.beside(path)}
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
