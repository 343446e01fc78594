package tokenizer

import "unicode/utf8"

// rewriter writes a text anew, character by character. Which characters of the
// original the new ones stand for is counted as in the reference: each
// replaces the next one that was not read yet, whatever it was made from.
type rewriter struct {
	dst    *normalized
	text   string
	unread Span // of text
	last   Span // read last
	added  bool // the last character written is an added one
	start  int  // of that in dst
}

func newRewriter(dst *normalized, text string, at Span) rewriter {
	return rewriter{dst: dst, text: text, unread: at, last: Span{at.Start, at.Start}}
}

// read returns the place of the next character.
func (w *rewriter) read() Span {
	_, size := utf8.DecodeRuneInString(w.text[w.unread.Start:w.unread.End])
	w.last = Span{w.unread.Start, w.unread.Start + size}
	w.unread.Start += size
	return w.last
}

// replace writes r for the next character and the removed ones after it.
func (w *rewriter) replace(r rune, removed int) {
	start := len(w.dst.text)
	w.dst.text = utf8.AppendRune(w.dst.text, r)
	w.dst.replaced(start, w.read())
	w.skip(removed)
}

// add writes r for the character read last, again. One edit tells of all that
// stands for it: a character may become eighteen.
func (w *rewriter) add(r rune) {
	w.start, w.added = len(w.dst.text), true
	w.dst.text = utf8.AppendRune(w.dst.text, r)
	last := w.dst.last()
	if last.start < last.end && last.end == w.start && last.from == w.last {
		last.end = len(w.dst.text)
		w.dst.change(last)
		return
	}
	w.dst.add(edit{w.start, len(w.dst.text), w.last})
}

// change writes r for one character and removed more of them, or, if removed is
// below zero, for none.
func (w *rewriter) change(r rune, removed int) {
	if removed < 0 {
		w.add(r)
	} else {
		w.replace(r, removed)
	}
}

// remove leaves n characters out. An added character before them becomes the
// first one's replacement.
func (w *rewriter) remove(n int) {
	if n == 0 {
		return
	}
	if w.added {
		w.restate(w.read())
		n--
	}
	w.skip(n)
}

// restate says that the character written last, an added one, stands for from.
func (w *rewriter) restate(from Span) {
	last := w.dst.last()
	if last.start == w.start {
		last.from = from
		w.dst.change(last)
		return
	}
	last.end = w.start
	w.dst.change(last)
	w.dst.add(edit{w.start, len(w.dst.text), from})
}

// skip leaves n characters out.
func (w *rewriter) skip(n int) {
	w.added = false
	for range n {
		w.dst.drop(w.read())
	}
}

// copy writes the characters of text[at.Start:at.End] as they are.
func (w *rewriter) copy(at Span) {
	if at.Start == at.End {
		return
	}
	if at.Start != w.unread.Start {
		for _, r := range w.text[at.Start:at.End] {
			w.replace(r, 0)
		}
		return
	}
	_, size := utf8.DecodeLastRuneInString(w.text[at.Start:at.End])
	w.dst.keep(w.text[at.Start:at.End], at.Start)
	w.last, w.unread.Start, w.added = Span{at.End - size, at.End}, at.End, false
}
