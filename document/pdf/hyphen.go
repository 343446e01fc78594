package pdf

import (
	"bytes"
	"strings"
	"unicode"
)

// unhyphenate decides for each word that ends a line with a hyphen and goes on
// in the next: the hyphen stays where the document has the word with it, or both
// parts as words but not the whole.
func unhyphenate(blocks []*block) {
	words := map[string]bool{}
	texts := eachText(blocks)
	for _, s := range texts {
		for _, w := range strings.FieldsFunc(strings.ToLower(*s), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != parting }) {
			words[w] = true
			for part := range strings.SplitSeq(w, "-") {
				words[part] = true
			}
		}
	}
	for _, s := range texts {
		*s = joinParted(*s, words)
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

const longestWord = 256 // bytes that are looked at before a hyphen

func joinParted(s string, words map[string]bool) string {
	var out []byte
	for {
		before, after, found := strings.Cut(s, string(parting))
		out = append(out, before...)
		if !found {
			return string(out)
		}
		end := out[max(0, len(out)-longestWord):]
		first := strings.ToLower(string(end[bytes.LastIndexFunc(end, isNoLetter)+1:]))
		second := after
		if at := strings.IndexFunc(after, isNoLetter); at >= 0 {
			second = after[:at]
		}
		second = strings.ToLower(second)
		if whole := first + second; !words[whole] && (words[first+"-"+second] || words[first] && words[second]) {
			out = append(out, '-')
		}
		s = after
	}
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) }
