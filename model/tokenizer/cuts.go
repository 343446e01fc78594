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
	setsApart    bool // ideographs are words, so also before them
	properties   []property
	seen, spaces [utf8.RuneSelf]bool // ASCII that is normalised to itself, or another such; to a space
	normalizers  []normalizer
}

func (t *Tokenizer) newCuts() *cuts {
	c := &cuts{least: pieceBytes, properties: properties(), normalizers: t.normalizers}
	c.words = wordsEndAtSpaces(t.preTokenizers, t.splitters)
	c.setsApart = t.setsIdeographsApart()
	c.texts = c.words && allLocal(t.normalizers) && t.addedNormalized.endAtSpaces()
	for b := range byte(utf8.RuneSelf) {
		text := normalize(t.normalizers, "0"+string(rune(b))+"0")
		if len(text) == 3 && text[0] == '0' && text[2] == '0' {
			c.seen[b], c.spaces[b] = isVisible(text[1]), text[1] == ' '
		}
	}
	return c
}

func isVisible(c byte) bool { return c > ' ' && c < 0x7f }

// setsIdeographsApart reports whether that is all that the text goes through before
// it is cut into words.
func (t *Tokenizer) setsIdeographsApart() bool {
	b, ok := t.normalizers[0].(*bertNormalizer)
	if !ok || len(t.normalizers) > 1 || b.active&ideograph == 0 || len(t.preTokenizers) > 0 || len(t.splitters) == 0 {
		return false
	}
	_, ok = t.splitters[0].(bertPreTokenizer)
	return ok
}

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
		switch b := text[i]; {
		case b < utf8.RuneSelf && c.spaces[b] && c.seenAround(text[at.Start:i], text[i+1:at.End]):
			return Span{at.Start, i}
		case b >= utf8.RuneSelf && c.setsApart && c.apart(text[i:at.End]):
			return Span{at.Start, i}
		}
	}
	return at
}

// apart reports whether text starts with a character that is going to be a word.
func (c *cuts) apart(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return c.properties[r]&ideograph != 0
}

func (c *cuts) seenAround(before, after string) bool {
	first, _ := utf8.DecodeRuneInString(after)
	last, _ := utf8.DecodeLastRuneInString(before)
	return c.isSeen(first) && c.isSeen(last)
}

// isSeen reports whether a character is no part of anything with those around it,
// and ends up as such that are seen.
func (c *cuts) isSeen(r rune) bool {
	if r < utf8.RuneSelf {
		return c.seen[r]
	}
	const open = attaches | nonStarter | joiner | control | space | mark
	if r == utf8.RuneError || c.properties[r]&open != 0 {
		return false
	}
	const around = "0"
	s, before := strings.CutPrefix(normalize(c.normalizers, around+string(r)+around), around)
	s, after := strings.CutSuffix(s, around)
	return before && after && s != "" && strings.TrimFunc(s, isSpace) == s
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
