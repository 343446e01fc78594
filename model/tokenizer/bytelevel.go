package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// byteAlphabet has a printable character for each byte, as GPT-2 wrote
// vocabularies: bytes that are not printable ones of Latin-1 take the
// characters from U+0100, in order.
var byteAlphabet = func() (alphabet [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		if b > ' ' && b < 0x7f || b > 0xa0 && b != 0xad {
			alphabet[b] = b
		} else {
			alphabet[b] = next
			next++
		}
	}
	return alphabet
}()

// alphabetByte is the inverse of byteAlphabet.
var alphabetByte = func() map[rune]byte {
	bytes := make(map[rune]byte, len(byteAlphabet))
	for b, r := range byteAlphabet {
		bytes[r] = byte(b)
	}
	return bytes
}()

// appendBytes appends the bytes that token is written for, or, if it has other
// characters than the alphabet's, token itself and false.
func appendBytes(dst []byte, token string) ([]byte, bool) {
	kept := len(dst)
	for _, r := range token {
		b, ok := alphabetByte[r]
		if !ok {
			return append(dst[:kept], token...), false
		}
		dst = append(dst, b)
	}
	return dst, true
}

// byteLevelFile is a ByteLevel, in any role.
type byteLevelFile struct {
	AddPrefix bool  `json:"add_prefix_space"`
	Trim      bool  `json:"trim_offsets"`
	Regex     *bool `json:"use_regex"`
}

func (b byteLevelFile) preTokenizers() []preTokenizer {
	var steps []preTokenizer
	if b.AddPrefix {
		steps = append(steps, prefixing{' ', always})
	}
	if b.Regex == nil || *b.Regex {
		steps = append(steps, splitting{wordPattern{properties: properties(), match: gpt2}})
	}
	return steps
}

// trimming takes the white space at a token's ends out of its offsets, as
// ByteLevel and RobertaProcessing do.
type trimming struct {
	on        bool
	addPrefix bool // so one space before the first word is none of the text's
}

// spaceMark is the space's character in the alphabet.
const spaceMark = 'Ġ'

func isSpaceOrMark(r rune) bool { return r == spaceMark || isSpace(r) }

// apply trims the offsets of s, which are in its text. Added tokens are as found
// there, white space included.
func (t trimming) apply(s *sequence, v *vocabulary) {
	if !t.on {
		return
	}
	for i, id := range s.ids {
		token := v.tokens[id]
		if v.kinds[id]&addedKind != 0 {
			token = s.text[s.offsets[i].Start:s.offsets[i].End]
		}
		if r, _ := utf8.DecodeRuneInString(token); isSpaceOrMark(r) {
			s.offsets[i] = t.trimStart(s.text, s.offsets[i], token, i == 0)
		}
		if r, _ := utf8.DecodeLastRuneInString(token); isSpaceOrMark(r) {
			s.offsets[i] = trimEnd(s.text, s.offsets[i], token)
		}
	}
}

func (t trimming) trimStart(text string, at Span, token string, first bool) Span {
	n := utf8.RuneCountInString(token) - utf8.RuneCountInString(strings.TrimLeftFunc(token, isSpaceOrMark))
	if n == 1 && t.addPrefix && (first || at.Start == 0) {
		return at
	}
	for ; n > 0 && at.Start < at.End; n-- {
		_, size := utf8.DecodeRuneInString(text[at.Start:at.End])
		at.Start += size
	}
	return at
}

func trimEnd(text string, at Span, token string) Span {
	n := utf8.RuneCountInString(token) - utf8.RuneCountInString(strings.TrimRightFunc(token, isSpaceOrMark))
	for ; n > 0 && at.Start < at.End; n-- {
		_, size := utf8.DecodeLastRuneInString(text[at.Start:at.End])
		at.End -= size
	}
	return at
}
