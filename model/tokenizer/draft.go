package tokenizer

import "strings"

// draft is a text on its way to the model: rewritten again and again, and
// where it came from.
type draft struct {
	text    string // of one of buffers, or the caller's
	edits   []packed
	buffers [2]normalized // by turns
	turn    int
	spare   []packed
	behind  bool // where it came from is counted from another place than its own
}

// normalize makes d what the normalizers, one after the other, make of
// text[at.Start:at.End].
func (d *draft) normalize(normalizers []normalizer, text string, at Span) {
	dst := d.buffer(at.Start, at.End-at.Start)
	normalizers[0].normalize(dst, text, at)
	d.text, d.edits, d.behind = dst.string(), dst.edits, dst.behind
	for _, n := range normalizers[1:] {
		dst = d.buffer(0, len(d.text))
		n.normalize(dst, d.text, Span{0, len(d.text)})
		d.behind = d.behind || dst.behind
		d.adopt(dst)
	}
}

// normalize returns what the normalizers make of the whole text.
func normalize(normalizers []normalizer, text string) string {
	var d draft
	d.normalize(normalizers, text, Span{0, len(text)})
	return strings.Clone(d.text)
}

// buffer is empty, for what comes from byte origin of the present text.
func (d *draft) buffer(origin, length int) *normalized {
	d.turn = 1 - d.turn
	dst := &d.buffers[d.turn]
	dst.reset(origin, length)
	return dst
}

// adopt makes next, which was written from d.text, the text.
func (d *draft) adopt(next *normalized) {
	edits := chain(d.spare[:0], d.edits, next.edits, len(next.text))
	next.edits, d.spare = edits, next.edits
	d.text, d.edits = next.string(), edits
}

// chain appends the edits that say where a text of the given length came from,
// if base says where its own original came from.
func chain(dst, base, edits []packed, length int) []packed {
	from := origins{base}
	for i, p := range edits {
		e := p.edit()
		same := Span{e.from.End, e.from.End + length - e.end} // unchanged in the original
		if i+1 < len(edits) {
			same.End = e.from.End + int(edits[i+1].start) - e.end
		}
		dst = append(dst, edit{e.start, e.end, from.translate(e.from)}.packed())
		base = skip(base, same.Start)
		dst = appendWithin(dst, base, same, e.end-same.Start)
	}
	return dst
}

// skip leaves out the edits of the text before byte at.
func skip(edits []packed, at int) []packed {
	for len(edits) > 0 && int(edits[0].end) <= at && int(edits[0].start) < at {
		edits = edits[1:]
	}
	return edits
}

// appendWithin appends the edits of the text's bytes in at, moved by offset.
func appendWithin(dst, edits []packed, at Span, offset int) []packed {
	for _, p := range edits {
		e := p.edit()
		if e.start >= at.End {
			break
		}
		start, end := max(e.start, at.Start), min(e.end, at.End)
		if start < end || e.start == e.end {
			dst = append(dst, edit{start + offset, end + offset, e.from}.packed())
		}
	}
	return dst
}
