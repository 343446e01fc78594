package main

import (
	"unicode"

	"github.com/rivo/uniseg"
)

// joiners are the code points next to which the end of a grapheme cluster needs
// more thought: between two others there is always one.
func joiners() set {
	s := newSet()
	for r := range rune(unicode.MaxRune + 1) {
		c := string(r)
		alone := uniseg.GraphemeClusterCount("a"+c) == 2 && uniseg.GraphemeClusterCount(c+"a") == 2 && uniseg.GraphemeClusterCount(c+c) == 2
		s[r] = !alone || r == '\r'
	}
	return s
}
