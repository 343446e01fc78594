package chunk

import (
	"strings"

	"sluice/document"
)

// structure cuts into semantic units: a table, a list with the line that leads
// to it, a section, or neighbouring small sections, under the heading chain
// above them. A page ends a unit where the text does not go on over it; of
// slides each is a unit. Tables are found by their rows in words.
type structure struct{}

// semantic are the limits of structure/1: those of the baseline's 1,000
// characters, about.
var semantic = limits{words: 180, pieces: 320}

func (structure) Version() string { return "structure/1" }

func (structure) Chunk(d document.Document) []Chunk {
	w := newWalk(d.Text)
	u := units{walk: w, slides: d.Slides()}
	u.section(d.Blocks, nil)
	return w.chunks
}

// units makes the units of one document.
type units struct {
	*walk
	slides bool
}

// section packs the blocks of a section, and its subsections as far as they fit
// whole; it goes into the others.
func (u units) section(blocks []*document.Block, path []string) {
	p := packer{walk: u.walk, path: path, limits: semantic.beside(path)}
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		if i > 0 && u.breaks(blocks[i-1], b) {
			p.flush()
		}
		switch {
		case b.Kind == document.Section && len(b.Children) == 1:
			p.block(b.Children[0])
		case b.Kind == document.Heading:
		case i+1 < len(blocks) && leads(u.text, b) && blocks[i+1].Kind != document.Section && p.inWords(b.Start, blocks[i+1]):
			i++
		case i+1 < len(blocks) && leads(u.text, b) && isTable(blocks[i+1]):
			i++
			p.flush()
			p.table(blocks[i], b.Start, leadTo(u.text, blocks, i))
		case b.Kind != document.Metadata && p.inWords(b.Start, b):
		case b.Kind == document.Section:
			p.flush()
			u.section(b.Children, extend(path, b.Title))
		case isTable(b):
			p.flush()
			p.table(b, b.Start, leadTo(u.text, blocks, i))
		default:
			p.block(b)
			if b.Kind == document.Metadata {
				p.flush()
			}
		}
	}
	p.flush()
}

// leads says whether a block is a line that leads to the next one.
func leads(text string, b *document.Block) bool {
	return b.Kind == document.Paragraph && strings.HasSuffix(strings.TrimRight(text[b.Start:b.End], "*_"), ":")
}

// breaks says whether a page ends between two blocks and the text does not go
// on over it.
func (u units) breaks(before, b *document.Block) bool {
	from, to := lastPage(before), firstPage(b)
	if from == 0 || to == 0 || from == to {
		return false
	}
	return u.slides || b.Kind == document.Section || strings.ContainsAny(u.text[before.End-1:before.End], ".!?")
}

func firstPage(b *document.Block) int {
	if len(b.Places) > 0 {
		return b.Places[0].Page
	}
	if len(b.Children) > 0 {
		return firstPage(b.Children[0])
	}
	return 0
}

func lastPage(b *document.Block) int {
	if len(b.Places) > 0 {
		return b.Places[len(b.Places)-1].Page
	}
	if len(b.Children) > 0 {
		return lastPage(b.Children[len(b.Children)-1])
	}
	return 0
}
