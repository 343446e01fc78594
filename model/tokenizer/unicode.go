package tokenizer

import (
	"cmp"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:generate go run ./internal/gentables

// property is a set of what a tokenizer asks of a code point.
type property uint16

const (
	control property = 1 << iota
	space
	punct
	ideograph
	mark       // an accent to strip
	decomposes // has a canonical decomposition
	nonStarter // has, or decomposes to, a combining class above zero
	hasLower
	letter     // \p{L}
	number     // \p{N}
	joiner     // its grapheme cluster needs more thought
	compatible // has another compatible than canonical decomposition
	attaches   // may compose with, or change places with, what is before it
	recomposes // canonical composition changes it
)

// mapping says what a code point becomes.
type mapping struct {
	from rune
	to   string
}

// composition says what two code points compose to.
type composition struct {
	first, second, to rune
}

// combiningRun gives first to last the canonical combining class.
type combiningRun struct {
	first, last rune
	class       uint8
}

// Hangul syllables decompose by arithmetic (Unicode, section 3.12).
const (
	syllableFirst = 0xAC00
	syllableLast  = 0xD7A3
	leadFirst     = 0x1100
	vowelFirst    = 0x1161
	trailFirst    = 0x11A7
	leads         = 19
	vowels        = 21
	trails        = 28
)

// properties is indexed by code point: flat, because every
// non-ASCII character of every text is looked up in it.
var properties = sync.OnceValue(func() []property {
	table := make([]property, unicode.MaxRune+1)
	for p, ranges := range map[property][]rune{
		control: controls, space: spaces, punct: punctuation, ideograph: ideographs, mark: marks,
		letter: letters, number: numbers, joiner: joiners, recomposes: unstable,
	} {
		for i := 0; i < len(ranges); i += 2 {
			flag(table, ranges[i], ranges[i+1], p)
		}
	}
	for _, c := range combiningClasses {
		flag(table, c.first, c.last, nonStarter|attaches)
	}
	for _, c := range compositions {
		table[c.second] |= attaches
	}
	flag(table, vowelFirst, vowelFirst+vowels-1, attaches)
	flag(table, trailFirst+1, trailFirst+trails-1, attaches)
	for _, m := range decompositions {
		first, _ := utf8.DecodeRuneInString(m.to)
		table[m.from] |= decomposes | table[first]&(nonStarter|attaches)
	}
	for _, m := range compatibleDecompositions {
		first, _ := utf8.DecodeRuneInString(m.to)
		table[m.from] |= compatible | table[first]&attaches
	}
	flag(table, syllableFirst, syllableLast, decomposes)
	for _, m := range lowercases {
		table[m.from] |= hasLower
	}
	return table
})

func flag(table []property, first, last rune, p property) {
	for r := first; r <= last; r++ {
		table[r] |= p
	}
}

// lookUp returns what r becomes; r must be in the table.
func lookUp(table []mapping, r rune) string {
	i, _ := slices.BinarySearchFunc(table, r, func(m mapping, r rune) int { return cmp.Compare(m.from, r) })
	return table[i].to
}

// combiningClass of a non-starter.
func combiningClass(r rune) uint8 {
	i, _ := slices.BinarySearchFunc(combiningClasses, r, func(c combiningRun, r rune) int { return cmp.Compare(c.last, r) })
	return combiningClasses[i].class
}

// appendDecomposition appends the canonical decomposition of r, which must
// have one.
func appendDecomposition(dst []rune, r rune) []rune {
	if r < syllableFirst || r > syllableLast {
		for _, d := range lookUp(decompositions, r) {
			dst = append(dst, d)
		}
		return dst
	}
	s := r - syllableFirst
	dst = append(dst, leadFirst+s/(vowels*trails), vowelFirst+s/trails%vowels)
	if t := s % trails; t > 0 {
		dst = append(dst, trailFirst+t)
	}
	return dst
}

// compose returns what first and second compose to, or 0.
func compose(first, second rune) rune {
	switch {
	case first >= leadFirst && first < leadFirst+leads && second >= vowelFirst && second < vowelFirst+vowels:
		return syllableFirst + ((first-leadFirst)*vowels+second-vowelFirst)*trails
	case first >= syllableFirst && first <= syllableLast && (first-syllableFirst)%trails == 0 && second > trailFirst && second < trailFirst+trails:
		return first + second - trailFirst
	}
	i, found := slices.BinarySearchFunc(compositions, composition{first: first, second: second}, func(a, b composition) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second))
	})
	if !found {
		return 0
	}
	return compositions[i].to
}
