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
	edits []packed // in order; the first is empty and sets the origin

	behind bool // not all of the original was counted, so a text after it would be counted wrongly
}

// edit says that text[start:end] came from from's bytes of the original.
type edit struct {
	start, end int
	from       Span
}

// packed is an edit as it is kept: a text of which every character is rewritten
// has as many edits as characters. No text is of 2 GiB.
type packed struct {
	start, end, fromStart, fromEnd int32
}

func (e edit) packed() packed {
	return packed{int32(e.start), int32(e.end), int32(e.from.Start), int32(e.from.End)}
}

func (p packed) edit() edit {
	return edit{int(p.start), int(p.end), Span{int(p.fromStart), int(p.fromEnd)}}
}

// reset empties n; what is appended next comes from the original's byte origin,
// and is mostly about as long as the original.
func (n *normalized) reset(origin, length int) {
	n.text = slices.Grow(n.text[:0], length)
	n.edits, n.behind = n.edits[:0], false
	n.add(edit{from: Span{origin, origin}})
}

func (n *normalized) add(e edit) { n.edits = append(n.edits, e.packed()) }

// last is the last edit.
func (n *normalized) last() edit { return n.edits[len(n.edits)-1].edit() }

// change changes the last edit.
func (n *normalized) change(e edit) { n.edits[len(n.edits)-1] = e.packed() }

// string is valid until n changes.
func (n *normalized) string() string {
	return unsafe.String(unsafe.SliceData(n.text), len(n.text))
}

// replaced says that the text since start stands for the original's from. That
// is clear, and not kept, if it is of the same length and follows what is
// before it.
func (n *normalized) replaced(start int, from Span) {
	last := n.last()
	if from.Start-last.from.End == start-last.end && from.End-from.Start == len(n.text)-start && from.Start < from.End {
		return
	}
	n.add(edit{start, len(n.text), from})
}

// keep appends text, which is the original's from byte origin on.
func (n *normalized) keep(text string, origin int) {
	last := n.last()
	if origin-last.from.End != len(n.text)-last.end {
		n.add(edit{len(n.text), len(n.text), Span{origin, origin}})
	}
	n.text = append(n.text, text...)
}

// drop leaves the original's from out.
func (n *normalized) drop(from Span) {
	last := n.last()
	if last.start == len(n.text) && last.from.End == from.Start {
		last.from.End = from.End
		n.change(last)
		return
	}
	n.add(edit{len(n.text), len(n.text), from})
}

// origins turns ranges of a normalised text into ranges of the original. The
// ranges asked for must not overlap and must come in order.
type origins struct {
	edits []packed // the first is the last one at or before the range
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
	for len(o.edits) > 1 && int(o.edits[1].start) <= at {
		o.edits = o.edits[1:]
	}
	return o.edits[0].edit()
}
