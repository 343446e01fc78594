package pdf

import (
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

func joinParted(s string, words map[string]bool) string {
	for {
		before, after, found := strings.Cut(s, string(parting))
		if !found {
			return s
		}
		first := strings.ToLower(before[strings.LastIndexFunc(before, isNoLetter)+1:])
		second := strings.ToLower(after)
		if end := strings.IndexFunc(after, isNoLetter); end >= 0 {
			second = second[:end]
		}
		hyphen := "-"
		if whole := first + second; words[whole] || !words[first+"-"+second] && !(words[first] && words[second]) {
			hyphen = ""
		}
		s = before + hyphen + after
	}
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) }
