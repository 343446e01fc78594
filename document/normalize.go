package document

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const byteOrderMark = '\uFEFF'

// Normalize returns the normalised text of raw, as docs/formats/text.md states
// it, or ErrNotUTF8 with the position of the first bad byte. It is idempotent.
func Normalize(raw []byte) (string, error) {
	if at := invalidUTF8(raw); at >= 0 {
		return "", fmt.Errorf("%w (bad byte 0x%02x at position %d)", ErrNotUTF8, raw[at], at)
	}
	return strings.TrimSpace(cleanRunes(string(raw))), nil
}

// invalidUTF8 returns the position of the first byte that is no UTF-8, or -1.
func invalidUTF8(raw []byte) int {
	if utf8.Valid(raw) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// cleanRunes maps line breaks to LF and control characters to spaces, and
// removes byte order marks. Text that has none of them is returned as it is.
func cleanRunes(s string) string {
	first := strings.IndexFunc(s, func(r rune) bool { return cleanRune(r) != r })
	if first < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	out.WriteString(s[:first])
	afterCR := false
	for _, r := range s[first:] {
		if c := cleanRune(r); c >= 0 && !(r == '\n' && afterCR) {
			out.WriteRune(c)
		}
		afterCR = r == '\r'
	}
	return out.String()
}

// cleanRune returns what r becomes, -1 if it is removed.
func cleanRune(r rune) rune {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\t':
		return r
	case r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
		return '\n'
	case r == byteOrderMark:
		return -1
	case unicode.IsControl(r):
		return ' '
	}
	return r
}

// isBlank says whether s has nothing but white space.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// trimRange narrows [start, end) so that it neither begins nor ends in white space.
func trimRange(text string, start, end int) (int, int) {
	s := strings.TrimLeftFunc(text[start:end], unicode.IsSpace)
	start = end - len(s)
	return start, start + len(strings.TrimRightFunc(s, unicode.IsSpace))
}
