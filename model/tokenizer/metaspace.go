package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// prefixing writes mark for each space, and before each word that does not
// start with it; that mark comes from where the word's first character is from.
type prefixing struct {
	mark   rune
	scheme string
}

// The schemes: which words get a mark.
const (
	always = "always"
	first  = "first" // those where the text starts
	never  = "never"
)

func (p prefixing) preTokenize(w *words) {
	dst, from := w.buffer(0, w.length()), origins{w.edits}
	w.next = w.next[:0]
	for _, at := range w.spans {
		start := len(dst.text)
		p.rewrite(newRewriter(dst, w.text, at), p.wanted(w.text, at, &from))
		w.next = append(w.next, Span{start, len(dst.text)})
	}
	w.spans, w.next = w.next, w.spans
	w.adopt(dst)
}

// wanted says whether the word gets a mark before it.
func (p prefixing) wanted(text string, at Span, from *origins) bool {
	r, _ := utf8.DecodeRuneInString(text[at.Start:at.End])
	switch {
	case r == p.mark || r == ' ' || at.Start == at.End || p.scheme == never:
		return false
	case p.scheme == first:
		return from.of(at.Start, at.End).Start == 0
	}
	return true
}

func (p prefixing) rewrite(w rewriter, prefix bool) {
	at := w.unread
	if prefix {
		r, size := utf8.DecodeRuneInString(w.text[at.Start:at.End])
		w.replace(p.mark, 0)
		w.add(r)
		at.Start += size
	}
	for at.Start < at.End {
		n := strings.IndexByte(w.text[at.Start:at.End], ' ')
		if n < 0 {
			n = at.End - at.Start
		}
		w.copy(Span{at.Start, at.Start + n})
		at.Start += n
		if at.Start < at.End {
			w.replace(p.mark, 0)
			at.Start++
		}
	}
}

// cutBefore starts a word at each mark.
type cutBefore struct{ mark string }

func (c cutBefore) next(text string, at Span) (word, rest Span) {
	end := at.End
	if n := strings.Index(text[at.Start+1:at.End], c.mark); n >= 0 {
		end = at.Start + 1 + n
	}
	return Span{at.Start, end}, Span{end, at.End}
}

// metaspaceFile is a Metaspace, pre-tokenizer or decoder.
type metaspaceFile struct {
	Replacement string `json:"replacement"`
	Scheme      string `json:"prepend_scheme"`
	AddPrefix   *bool  `json:"add_prefix_space"` // the older form of the scheme
	Split       *bool  `json:"split"`
}

func readMetaspace(c component) (*metaspaceFile, error) {
	m := &metaspaceFile{Scheme: always}
	if err := c.decode(m); err != nil {
		return nil, err
	}
	if m.AddPrefix != nil && !*m.AddPrefix {
		m.Scheme = never
	}
	if utf8.RuneCountInString(m.Replacement) != 1 {
		return nil, fmt.Errorf("metaspace: the replacement %q is not one character", m.Replacement)
	}
	if m.Scheme != always && m.Scheme != first && m.Scheme != never {
		return nil, fmt.Errorf("%w: Metaspace with prepend_scheme %q", ErrUnsupported, m.Scheme)
	}
	return m, nil
}

func (m *metaspaceFile) mark() rune {
	r, _ := utf8.DecodeRuneInString(m.Replacement)
	return r
}

func (m *metaspaceFile) preTokenizers() []preTokenizer {
	steps := []preTokenizer{prefixing{m.mark(), m.Scheme}}
	if m.Split == nil || *m.Split {
		steps = append(steps, splitting{cutBefore{m.Replacement}})
	}
	return steps
}

// whitespaceSplit is WhitespaceSplit: words are what is between white space.
type whitespaceSplit struct{ properties []property }

func (s whitespaceSplit) next(text string, at Span) (word, rest Span) {
	start := at.Start
	for i := at.Start; i < at.End; {
		r, size := utf8.DecodeRuneInString(text[i:at.End])
		if s.properties[r]&space != 0 {
			if start < i {
				return Span{start, i}, Span{i + size, at.End}
			}
			start = i + size
		}
		i += size
	}
	return Span{start, at.End}, Span{at.End, at.End}
}
