package pdf

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unhyphenate decides for each word that ends a line with a hyphen and goes on
// in the next: the hyphen stays where the document has the word with it, or both
// parts as words but not the whole.
func unhyphenate(w *work, blocks []*block) {
	texts := eachText(blocks)
	words := vocabulary{work: w, has: map[string]bool{}, left: maxAsked}
	for _, s := range texts {
		words.ask(*s)
	}
	for _, s := range texts {
		words.learn(*s)
	}
	for _, s := range texts {
		*s = joinParted(*s, words.has)
	}
}

// eachText points to every text of the blocks.
func eachText(blocks []*block) []*string {
	var texts []*string
	for _, b := range blocks {
		texts = append(texts, &b.text)
		if b.table == nil {
			continue
		}
		for _, row := range b.table.rows {
			for i := range row {
				texts = append(texts, &row[i])
			}
		}
	}
	return texts
}

const (
	longestWord = 256      // bytes that are looked at before a hyphen
	maxAsked    = 64 << 20 // bytes of the words that are asked for
	askedWord   = 64       // bytes that one takes beside its own, about
)

// vocabulary is whether a document has those words, in small letters, that decide
// on its hyphens. Words that would be asked for beyond maxAsked are none.
type vocabulary struct {
	*work
	has  map[string]bool
	left int
}

// ask asks for the words that a text may be put together of at its parting signs.
func (v *vocabulary) ask(text string) {
	v.did(len(text))
	for at := strings.IndexRune(text, parting); at >= 0 && v.left > 0; {
		after := text[at+utf8.RuneLen(parting):]
		second := strings.ToLower(firstLetters(after))
		v.add(second)
		for _, first := range lastLetters(text[:at]) {
			first = strings.ToLower(first)
			v.add(first)
			v.add(first + second)
			v.add(first + "-" + second)
		}
		next := strings.IndexRune(after, parting)
		if next < 0 {
			return
		}
		at = len(text) - len(after) + next
	}
}

func (v *vocabulary) add(word string) {
	v.did(1)
	v.left -= len(word) + askedWord
	if _, asked := v.has[word]; !asked && v.left > 0 {
		v.has[word] = false
	}
}

// learn looks for the words in a text.
func (v *vocabulary) learn(text string) {
	v.did(len(text))
	if len(v.has) == 0 {
		return
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != parting }) {
		v.learnWord(word)
		for part := range strings.SplitSeq(word, "-") {
			v.learnWord(part)
		}
	}
}

func (v *vocabulary) learnWord(word string) {
	if _, asked := v.has[word]; asked {
		v.has[word] = true
	}
}

// firstLetters are those that a text begins with.
func firstLetters(text string) string {
	if at := strings.IndexFunc(text, isNoLetter); at >= 0 {
		return text[:at]
	}
	return text
}

// lastLetters are those that a text ends with, at most longestWord bytes, once for
// each way to take the parting signs among them: as a hyphen or as nothing.
func lastLetters(text string) (all []string) {
	letters := ""
	for {
		r, n := utf8.DecodeLastRuneInString(text)
		switch {
		case r == parting:
			all = append(all, letters)
		case isNoLetter(r) || len(letters)+n > longestWord:
			return append(all, letters)
		default:
			letters = text[len(text)-n:] + letters
		}
		text = text[:len(text)-n]
	}
}

func joinParted(s string, words map[string]bool) string {
	if !strings.ContainsRune(s, parting) {
		return s
	}
	var out []byte
	for {
		before, after, found := strings.Cut(s, string(parting))
		out = append(out, before...)
		if !found {
			return string(out)
		}
		end := out[max(0, len(out)-longestWord):]
		first := strings.ToLower(string(end[bytes.LastIndexFunc(end, isNoLetter)+1:]))
		second := strings.ToLower(firstLetters(after))
		if whole := first + second; !words[whole] && (words[first+"-"+second] || words[first] && words[second]) {
			out = append(out, '-')
		}
		s = after
	}
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) }
