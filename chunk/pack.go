package chunk

import (
	"strings"
	"unicode"

	"sluice/document"
)

// packer fills chunks with neighbouring parts of one section, each as full as
// the limits allow.
type packer struct {
	*walk
	path   []string
	limits limits // of a chunk beside its path

	start, end int // of the chunk under way; none if they are equal
	size       size
	prose      bool          // it ends in sentences
	kind       document.Kind // of the block that is being packed
}

// block packs a block: whole where it fits, else by its parts.
func (p *packer) block(b *document.Block) {
	p.kind = b.Kind
	if p.whole(b.Start, b.End) {
		return
	}
	switch b.Kind {
	case document.Table, document.Code, document.Metadata:
		p.cut(b.Start, b.End, line, word, prefix(p.limits))
	case document.List, document.Item, document.Quote:
		p.children(b)
	default:
		p.cut(b.Start, b.End, sentence, word, prefix(p.limits))
	}
}

// children packs a container: the marks before its first child, then the
// children, which leave out nothing else.
func (p *packer) children(b *document.Block) {
	first := b.End
	if len(b.Children) > 0 {
		first = b.Children[0].Start
	}
	p.cut(b.Start, first, line, word, prefix(p.limits))
	for _, c := range b.Children {
		p.block(c)
	}
}

// cut packs [start, end) in the parts that the first splitter makes, and what
// does not fit of these in the parts that the next one makes.
func (p *packer) cut(start, end int, by ...splitter) {
	for start < end {
		until := start + by[0](p.text[start:end])
		if !p.whole(start, until) {
			p.cut(start, until, by[1:]...)
		}
		start = until
	}
}

// whole packs [start, end) in one piece and says whether that was possible.
func (p *packer) whole(start, end int) bool {
	start, end = trim(p.text, start, end)
	s := p.text[start:end]
	size := measure(s, p.limits)
	if !size.fits(len(s), p.limits) {
		return false
	}
	if s != "" {
		p.add(start, end, size)
	}
	return true
}

// add puts a part that fits into the chunk under way, or begins one with it.
func (p *packer) add(start, end int, s size) {
	defer func() { p.prose = p.kind == document.Paragraph }()
	if sum := p.size.plus(s); p.start < p.end && sum.fits(end-p.start, p.limits) {
		p.end, p.size = end, sum
		return
	}
	before, prose := Chunk{Start: p.start, End: p.end}, p.prose
	p.flush()
	p.start, p.end, p.size = start, end, s
	if prose {
		p.overlap(before)
	}
}

// overlap begins the chunk under way with the last whole sentences of the one
// before it, as many as fit into the limits and into the walk's overlap.
func (p *packer) overlap(before Chunk) {
	for at := before.Start; at < before.End; at += sentence(p.text[at:before.End]) {
		start, _ := trim(p.text, at, before.End)
		if start == before.Start || measure(p.text[start:before.End], p.limits).words > p.walk.overlap {
			continue
		}
		if s := measure(p.text[start:p.end], p.limits); s.fits(p.end-start, p.limits) {
			p.start, p.size = start, s
			return
		}
	}
}

// flush ends the chunk under way.
func (p *packer) flush() {
	if p.start < p.end {
		p.chunks = append(p.chunks, Chunk{Start: p.start, End: p.end, Headings: p.path, Index: p.index()})
	}
	p.start, p.end, p.size = 0, 0, size{}
}

// trim narrows [start, end) so that it neither begins nor ends in white space.
func trim(text string, start, end int) (int, int) {
	s := strings.TrimLeftFunc(text[start:end], unicode.IsSpace)
	start = end - len(s)
	return start, start + len(strings.TrimRightFunc(s, unicode.IsSpace))
}
