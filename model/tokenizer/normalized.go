package tokenizer

import (
	"slices"
	"unicode/utf8"
	"unsafe"
)

// normalizer rewrites text[at.Start:at.End] and appends it to dst, which was
// reset to at.Start.
type normalizer interface {
	normalize(dst *normalized, text string, at Span)
}

// normalized is a rewritten text which remembers where it came from. Only the
// differences are kept: bytes that no edit covers are those of the original,
// one for one.
type normalized struct {
	text  []byte
	edits []edit // in order; the first is empty and sets the origin
}

// edit says that text[start:end] came from from's bytes of the original.
type edit struct {
	start, end int
	from       Span
}

// reset empties n; what is appended next comes from the original's byte origin,
// and is mostly about as long as the original.
func (n *normalized) reset(origin, length int) {
	n.text = slices.Grow(n.text[:0], length)
	n.edits = append(n.edits[:0], edit{from: Span{origin, origin}})
}

// string is valid until n changes.
func (n *normalized) string() string {
	return unsafe.String(unsafe.SliceData(n.text), len(n.text))
}

// replaced says that the text since start stands for the original's from. That
// is clear, and not kept, if it is of the same length and follows what is
// before it.
func (n *normalized) replaced(start int, from Span) {
	last := n.edits[len(n.edits)-1]
	if from.Start-last.from.End == start-last.end && from.End-from.Start == len(n.text)-start && from.Start < from.End {
		return
	}
	n.edits = append(n.edits, edit{start, len(n.text), from})
}

// keep appends text, which is the original's from byte origin on.
func (n *normalized) keep(text string, origin int) {
	last := n.edits[len(n.edits)-1]
	if origin-last.from.End != len(n.text)-last.end {
		n.edits = append(n.edits, edit{len(n.text), len(n.text), Span{origin, origin}})
	}
	n.text = append(n.text, text...)
}

// drop leaves the original's from out.
func (n *normalized) drop(from Span) {
	last := &n.edits[len(n.edits)-1]
	if last.start == len(n.text) && last.from.End == from.Start {
		last.from.End = from.End
		return
	}
	n.edits = append(n.edits, edit{len(n.text), len(n.text), from})
}

// origins turns ranges of a normalised text into ranges of the original. The
// ranges asked for must not overlap and must come in order.
type origins struct {
	edits []edit // the first is the last one at or before the range
}

// of is the smallest range of the original that covers the characters of
// text[start:end], which is not empty.
func (o *origins) of(start, end int) Span {
	from := o.edit(start)
	first := from.from.End + start - from.end
	if start < from.end {
		first = from.from.Start
	}
	to := o.edit(end - 1)
	return Span{first, to.from.End + max(0, end-to.end)}
}

// characters is what of returns for the whole characters of text that have a
// byte in at.
func (o *origins) characters(text string, at Span) Span {
	for at.Start > 0 && !utf8.RuneStart(text[at.Start]) {
		at.Start--
	}
	for at.End < len(text) && !utf8.RuneStart(text[at.End]) {
		at.End++
	}
	return o.of(at.Start, at.End)
}

// translate is as of, but at may be empty.
func (o *origins) translate(at Span) Span {
	if at.Start < at.End {
		return o.of(at.Start, at.End)
	}
	e := o.edit(at.Start)
	place := e.from.End + at.Start - e.end
	if at.Start < e.end {
		place = e.from.Start
	}
	return Span{place, place}
}

func (o *origins) edit(at int) edit {
	for len(o.edits) > 1 && o.edits[1].start <= at {
		o.edits = o.edits[1:]
	}
	return o.edits[0]
}
