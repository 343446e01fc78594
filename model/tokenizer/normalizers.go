package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// wellFormed replaces every byte that is not UTF-8 by U+FFFD.
type wellFormed struct{}

func (wellFormed) normalize(dst *normalized, text string, at Span) {
	for at.Start < at.End {
		valid := validPrefix(text[at.Start:at.End])
		dst.text = append(dst.text, text[at.Start:at.Start+valid]...)
		if at.Start += valid; at.Start < at.End {
			start := len(dst.text)
			dst.text = utf8.AppendRune(dst.text, utf8.RuneError)
			dst.replaced(start, Span{at.Start, at.Start + 1})
			at.Start++
		}
	}
}

// validPrefix is the length of the longest prefix of text that is UTF-8.
func validPrefix(text string) int {
	if utf8.ValidString(text) {
		return len(text)
	}
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return len(text)
}

// lowercase is Lowercase.
type lowercase struct{ properties []property }

func (l lowercase) normalize(dst *normalized, text string, at Span) {
	w := newRewriter(dst, text, at)
	same := at.Start // what is from there on stays
	for i, r := range text[at.Start:at.End] {
		if l.properties[r]&hasLower != 0 {
			w.copy(Span{same, at.Start + i})
			for k, lower := range lookUp(lowercases, r) {
				w.change(lower, -min(k, 1))
			}
			same = w.unread.Start
		}
	}
	w.copy(Span{same, at.End})
}

// strip is Strip.
type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

func (s strip) normalize(dst *normalized, text string, at Span) {
	kept := at
	if s.Left {
		kept.Start = at.End - len(strings.TrimLeftFunc(text[at.Start:at.End], isSpace))
	}
	if s.Right {
		kept.End = kept.Start + len(strings.TrimRightFunc(text[kept.Start:at.End], isSpace))
	}
	dst.keep(text[kept.Start:kept.End], kept.Start)
}

// prepend is Prepend: something before a text that is not empty, from where its
// first character is from.
type prepend struct{ prefix []rune }

func (p prepend) normalize(dst *normalized, text string, at Span) {
	if at.Start == at.End {
		return
	}
	w := newRewriter(dst, text, at)
	r, size := utf8.DecodeRuneInString(text[at.Start:at.End])
	w.replace(p.prefix[0], 0)
	for _, r := range p.prefix[1:] {
		w.add(r)
	}
	w.add(r)
	w.copy(Span{at.Start + size, at.End})
}

func readPrepend(c component) (normalizer, error) {
	var f struct {
		Prepend string `json:"prepend"`
	}
	if err := c.decode(&f); err != nil {
		return nil, err
	}
	if f.Prepend == "" {
		return nil, errors.New("a Prepend normalizer needs prepend")
	}
	return prepend{[]rune(f.Prepend)}, nil
}

// replacement is Replace: something else for each match, from where the last
// character of the match is from.
type replacement struct {
	wanted  string
	find    func(text string) (start, end int) // of the first match; no match: end is 0
	content []rune
}

func (r replacement) normalize(dst *normalized, text string, at Span) {
	w := newRewriter(dst, text, at)
	for {
		start, end := r.find(text[at.Start:at.End])
		if end == 0 {
			break
		}
		match := Span{at.Start + start, at.Start + end}
		w.copy(Span{at.Start, match.Start})
		r.write(&w, utf8.RuneCountInString(text[match.Start:match.End]))
		at.Start = match.End
	}
	w.copy(at)
}

// write writes the content for a match of n characters.
func (r replacement) write(w *rewriter, n int) {
	if len(r.content) == 0 {
		w.skip(n)
		return
	}
	w.skip(n - 1)
	w.replace(r.content[0], 0)
	for _, c := range r.content[1:] {
		w.add(c)
	}
}

// manySpaces is the one regular expression that Replace may have.
const manySpaces = " {2,}"

func readReplace(c component) (normalizer, error) {
	var f struct {
		Pattern pattern `json:"pattern"`
		Content string  `json:"content"`
	}
	if err := c.decode(&f); err != nil {
		return nil, err
	}
	switch {
	case f.Pattern.String != "":
		find := func(text string) (int, int) { return findString(text, f.Pattern.String) }
		return replacement{f.Pattern.String, find, []rune(f.Content)}, nil
	case f.Pattern.Regex == manySpaces:
		return replacement{manySpaces, findSpaces, []rune(f.Content)}, nil
	}
	return nil, f.Pattern.refuse("Replace", manySpaces)
}

func findString(text, wanted string) (int, int) {
	i := strings.Index(text, wanted)
	if i < 0 {
		return 0, 0
	}
	return i, i + len(wanted)
}

// findSpaces finds manySpaces.
func findSpaces(text string) (int, int) {
	start := strings.Index(text, "  ")
	if start < 0 {
		return 0, 0
	}
	return start, len(text) - len(strings.TrimLeft(text[start:], " "))
}

// pattern holds one of the two.
type pattern struct{ String, Regex string }

func (p pattern) refuse(where, supported string) error {
	return fmt.Errorf("%w: %s of the pattern %q (supported: %q)", ErrUnsupported, where, p.String+p.Regex, supported)
}
