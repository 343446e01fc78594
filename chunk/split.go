package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A splitter returns the length of the first part of s, which is not empty:
// between one byte and all of it.
type splitter func(s string) int

func line(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n + 1
	}
	return len(s)
}

// word returns the first word with the white space around it.
func word(s string) int {
	trimmed := strings.TrimLeftFunc(s, unicode.IsSpace)
	n := strings.IndexFunc(trimmed, unicode.IsSpace)
	if n < 0 {
		return len(s)
	}
	_, width := utf8.DecodeRuneInString(trimmed[n:])
	return len(s) - len(trimmed) + n + width
}

// sentence returns the first sentence. One ends after . ! ? or … and closing
// quotes or brackets, where white space and no small letter follow and the mark
// does not belong to an initial or a number ("J. Doe", "2. Open"); or after 。！？｡, whatever follows.
func sentence(s string) int {
	var before, last rune // the two runes before r
	for i, r := range s {
		switch r {
		case '.', '!', '?', '…':
			if end := closed(s, i+utf8.RuneLen(r)); !isInitial(before, last, r) && endsHere(s[end:]) {
				return end
			}
		case '。', '！', '？', '｡':
			return closed(s, i+utf8.RuneLen(r))
		}
		before, last = last, r
	}
	return len(s)
}

// closed returns the position after the closing quotes and brackets at i, at
// most a few: more are no end of a sentence.
func closed(s string, i int) int {
	for range 4 {
		r, width := utf8.DecodeRuneInString(s[i:])
		if width == 0 || !unicode.In(r, unicode.Pe, unicode.Pf) && r != '"' && r != '\'' && r != '*' && r != '_' {
			return i
		}
		i += width
	}
	return i
}

func isInitial(before, last, mark rune) bool {
	return mark == '.' && (unicode.IsUpper(last) || unicode.IsDigit(last)) && (before == 0 || unicode.IsSpace(before))
}

// endsHere says whether rest begins with white space and then with something
// that may begin a sentence. It looks at few characters only.
func endsHere(rest string) bool {
	spaces := 0
	for _, r := range rest {
		if !unicode.IsSpace(r) {
			return spaces > 0 && !unicode.IsLower(r)
		}
		if spaces++; spaces > 8 {
			return true
		}
	}
	return false
}

// prefix returns a splitter that takes as many characters as fit.
func prefix(l limits) splitter {
	return func(s string) int {
		var c counter
		for i, r := range s {
			c.add(r)
			if i > 0 && !c.size.fits(i+utf8.RuneLen(r), l) {
				return i
			}
		}
		return len(s)
	}
}
