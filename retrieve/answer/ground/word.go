package ground

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// word is a token of a text: a word, a number with its separators, or a sign
// that stands for a unit.
type word struct {
	text   string // as it is written, normalised
	folded string // in lower case, without accents
	opens  bool   // begins a sentence
	after  bool   // punctuation that parts clauses is between it and the word before
}

// signs are words of one character.
const signs = "%€$£¥°"

// normal is the text in one spelling: compatibility forms composed (NFKC),
// digits of every script as ASCII, without invisible characters.
func normal(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case r > unicode.MaxASCII && unicode.IsDigit(r):
			return '0' + digit(r)
		case r == '’' || r == 'ʼ':
			return '\''
		case unicode.Is(unicode.Pd, r) || r == '−':
			return '-'
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		return r
	}, norm.NFKC.String(strings.ToValidUTF8(text, "\uFFFD")))
}

// digit is the value of a decimal digit: scripts have theirs in tens, from a zero on.
func digit(r rune) rune {
	for _, table := range unicode.Nd.R16 {
		if rune(table.Lo) <= r && r <= rune(table.Hi) {
			return (r - rune(table.Lo)) % 10
		}
	}
	for _, table := range unicode.Nd.R32 {
		if rune(table.Lo) <= r && r <= rune(table.Hi) {
			return (r - rune(table.Lo)) % 10
		}
	}
	return 0
}

// fold makes words comparable: lower case, without accents.
func fold(text string) string {
	if ascii(text) {
		return strings.ToLower(text)
	}
	chain := transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC)
	folded, _, err := transform.String(chain, strings.ToLower(text))
	if err != nil {
		return strings.ToLower(text)
	}
	return folded
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// words splits a normalised text. Letters and digits stay together; digits keep
// separators between them, and letters an apostrophe.
func words(text string) []word {
	var all []word
	opens, after := true, true
	for at := 0; at < len(text); {
		n := wordAt(text[at:])
		if n == 0 {
			r, size := utf8.DecodeRuneInString(text[at:])
			at += size
			after = after || strings.ContainsRune(",;:.!?()\n", r)
			opens = opens || strings.ContainsRune(".!?\n•", r)
			continue
		}
		parts := []string{text[at : at+n]}
		if r, _ := utf8.DecodeRuneInString(parts[0]); ideographic(r) {
			parts = han(parts[0], !after && len(all) > 0 && all[len(all)-1].number())
		}
		for _, part := range parts {
			all = append(all, word{part, fold(strings.TrimSuffix(part, "'s")), opens, after})
			opens, after = false, false
		}
		at += n
	}
	return all
}

// wordAt is the length of the word that the text begins with, 0 for none.
func wordAt(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	if strings.ContainsRune(signs, r) {
		return n
	}
	if !inWord(r) {
		return 0
	}
	for last := r; n < len(text); {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !inWord(r) && !joins(last, r, text[n+size:]) || ideographic(last) != ideographic(r) && (unicode.IsDigit(last) || unicode.IsDigit(r)) {
			break
		}
		last, n = r, n+size
	}
	return n
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// ideographic scripts leave no space beside a number.
func ideographic(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// joins reports a separator between two characters of one word: 1,000; 99.95;
// 10:30; don't.
func joins(before, r rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	if unicode.IsDigit(before) && unicode.IsDigit(next) {
		return strings.ContainsRune(",.:'", r)
	}
	return r == '\'' && unicode.IsLetter(before) && unicode.IsLetter(next)
}

func (w word) number() bool { return w.text[0] >= '0' && w.text[0] <= '9' }

// capital reports a first letter in upper case.
func (w word) capital() bool {
	r, _ := utf8.DecodeRuneInString(w.text)
	return unicode.IsUpper(r) || unicode.IsTitle(r)
}

// code reports what is a name wherever it stands: letters with digits (SEV1),
// or capitals after the first letter (SSO, YubiKey).
func (w word) code() bool {
	var letters, digits, upper bool
	for i, r := range w.text {
		letters = letters || unicode.IsLetter(r)
		digits = digits || unicode.IsDigit(r)
		upper = upper || i > 0 && unicode.IsUpper(r)
	}
	return letters && (upper || digits && !w.number())
}

// first is the first character.
func first(text string) string {
	_, n := utf8.DecodeRuneInString(text)
	return text[:n]
}
