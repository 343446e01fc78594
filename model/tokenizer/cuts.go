package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// pieceBytes is the length from which on a text is cut where it can be.
const pieceBytes = 4 << 10

// cuts finds the places where a text can be cut in two without a change of its
// tokens: before a single space between what is seen. Whatever normalizers and
// pre-tokenizers there are, those that look beyond it are known, and refused.
type cuts struct {
	least        int  // bytes of what is cut off
	texts, words bool // before, and after, it is normalised
	properties   []property
	seen, spaces [utf8.RuneSelf]bool // ASCII that is normalised to itself, or another such; to a space
	normalizers  []normalizer
}

func (t *Tokenizer) newCuts() *cuts {
	c := &cuts{least: pieceBytes, properties: properties(), normalizers: t.normalizers}
	c.words = wordsEndAtSpaces(t.preTokenizers, t.splitters)
	c.texts = c.words && allLocal(t.normalizers) && t.addedNormalized.endAtSpaces()
	for b := range byte(utf8.RuneSelf) {
		text := normalize(t.normalizers, "0"+string(rune(b))+"0")
		if len(text) == 3 && text[0] == '0' && text[2] == '0' {
			c.seen[b], c.spaces[b] = isSeen(text[1]), text[1] == ' '
		}
	}
	return c
}

func isSeen(c byte) bool { return c > ' ' && c < 0x7f }

// allLocal reports whether no normalizer joins what a cut parts, or does
// something else at the start of a text than elsewhere.
func allLocal(all []normalizer) bool {
	for _, n := range all {
		if l, ok := n.(positional); ok && !l.local() {
			return false
		}
	}
	return true
}

// positional normalizers may look at more than a few characters at a time.
type positional interface{ local() bool }

func (prepend) local() bool { return false }

func (s strip) local() bool { return !s.Left } // what is before a cut ends with what is seen

func (r replacement) local() bool {
	return r.wanted == manySpaces || len(r.content) > 0 && !strings.ContainsFunc(r.wanted+string(r.content), isSpace)
}

// wordsEndAtSpaces reports whether the first that cuts does so before a space.
func wordsEndAtSpaces(before []preTokenizer, last []splitter) bool {
	mark := ' '
	for _, p := range before {
		switch p := p.(type) {
		case prefixing:
			mark = p.mark
		case splitting:
			return cutsBefore(p.splitter, mark)
		}
	}
	return len(last) > 0 && cutsBefore(last[0], mark)
}

// cutsBefore reports whether a word starts, or ends, before a mark that is not
// after white space.
func cutsBefore(s splitter, mark rune) bool {
	if c, ok := s.(cutBefore); ok {
		return c.mark == string(mark)
	}
	return mark == ' '
}

// endAtSpaces reports whether no token is found on both sides of a space that
// is not the token's first character.
func (a *addedTokens) endAtSpaces() bool {
	for _, t := range a.tokens {
		if t.RStrip || strings.Contains(strings.TrimLeft(t.Content, " "), " ") {
			return false
		}
	}
	return true
}

// text is the first part of text[at.Start:at.End], of at least so many bytes, and
// little more where there are places to cut.
func (c *cuts) text(text string, at Span) Span {
	if !c.texts {
		return at
	}
	for i := at.Start + c.least; i < at.End-1; i++ {
		if b, after := text[i], text[i+1]; b < utf8.RuneSelf && after < utf8.RuneSelf && c.spaces[b] && c.seen[after] && c.closed(text[at.Start:i]) {
			return Span{at.Start, i}
		}
	}
	return at
}

// closed reports whether the last character of text is seen, and no part of
// anything with what comes after it.
func (c *cuts) closed(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	if r < utf8.RuneSelf {
		return c.seen[r]
	}
	const open = attaches | nonStarter | joiner | control | space | mark
	if r == utf8.RuneError || c.properties[r]&open != 0 {
		return false
	}
	kept, ok := strings.CutSuffix(normalize(c.normalizers, "0"+string(r)+"0"), "0")
	last, _ := utf8.DecodeLastRuneInString(kept)
	return ok && len(kept) > len("0") && c.properties[last]&space == 0
}

// normalised is as text, for a text that is normalised.
func (c *cuts) normalised(text string, at Span) Span {
	if !c.words {
		return at
	}
	for i := at.Start + c.least; i < at.End; i++ {
		if text[i] == ' ' {
			if r, _ := utf8.DecodeLastRuneInString(text[at.Start:i]); c.properties[r]&space == 0 {
				return Span{at.Start, i}
			}
		}
	}
	return at
}
