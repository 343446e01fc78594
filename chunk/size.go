package chunk

import (
	"unicode"
	"unicode/utf8"
)

// limits of a chunk. docs/formats/chunks.md says how they were chosen.
type limits struct {
	words  int
	pieces int // of heading path and chunk together
}

// usual are the limits of versions 1 of the formats' own chunkers.
var usual = limits{words: maxWords, pieces: maxPieces}

const (
	maxWords  = 180
	maxPieces = 240
	maxBytes  = 4096 // white space included

	pieceBytes = 6 // letters and digits that count as one piece
)

// size counts a text as an embedding model sees it. Words are separated by
// white space, and each character of the scripts that are written without it
// is a word. Pieces estimate tokens: each punctuation mark, symbol and such
// character is one, and a run of n bytes of letters and digits is ⌈n/6⌉.
type size struct{ words, pieces int }

func (s size) plus(t size) size { return size{s.words + t.words, s.pieces + t.pieces} }

// beside are the limits of a chunk beside its heading path: at least half of
// the pieces.
func (l limits) beside(path []string) limits {
	left := l.pieces
	for _, title := range path {
		left -= measure(title, l).pieces
	}
	return limits{l.words, max(left, l.pieces/2)}
}

// fits says whether a text of size s and n bytes is within the limits.
func (s size) fits(n int, l limits) bool {
	return s.words <= l.words && s.pieces <= l.pieces && n <= maxBytes
}

// measure counts s, but stops when it is beyond the limits.
func measure(s string, l limits) size {
	var c counter
	for i, r := range s {
		c.add(r)
		if !c.size.fits(i+1, l) {
			break
		}
	}
	return c.size
}

// counter counts rune by rune.
type counter struct {
	size
	inWord bool
	run    int // bytes of the run of letters and digits under way
}

func (c *counter) add(r rune) {
	switch {
	case unicode.IsSpace(r):
		c.inWord, c.run = false, 0
	case isUnspaced(r):
		c.words++
		c.pieces++
		c.inWord, c.run = false, 0
	case isAlphanumeric(r):
		c.startWord()
		before := c.run
		c.run += utf8.RuneLen(r)
		c.pieces += pieces(c.run) - pieces(before)
	default:
		c.startWord()
		c.pieces++
		c.run = 0
	}
}

func (c *counter) startWord() {
	if !c.inWord {
		c.inWord = true
		c.words++
	}
}

// pieces of a run of n bytes.
func pieces(n int) int { return (n + pieceBytes - 1) / pieceBytes }

func isAlphanumeric(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// isUnspaced says whether r is of a script that tokenizers cut into single
// characters.
func isUnspaced(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
