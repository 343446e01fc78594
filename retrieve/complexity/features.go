// Package complexity estimates from a query's text alone how likely it is that
// words do not suffice to answer it: that BM25 ranks worse than late interaction.
package complexity

import (
	"math"
	"strings"
	"unicode"
)

// Features of a query, in the order of Names.
type Features [count]float64

const (
	length    = iota // ln(1 + words)
	names            // ln(1 + capitalised words after the first)
	codes            // ln(1 + words of capitals, or of letters and digits)
	numbers          // ln(1 + words that begin with a digit, without letters)
	tabular          // 1 if a table, a figure or a part of one is named
	factual          // 1 if it asks who, when, where, which or how many
	causal           // 1 if it asks why or how, or for an explanation
	comparing        // 1 if it compares, or gives a choice
	closed           // 1 if it begins as what is answered by yes or no
	count
)

// Names of the features, as in the model's file.
var Names = [count]string{"length", "names", "codes", "numbers", "tabular", "factual", "causal", "comparing", "closed"}

// kinds of English words; "how many" is factual, though "how" is causal.
var kinds = map[string]int{
	"table": tabular, "tables": tabular, "figure": tabular, "figures": tabular, "fig": tabular, "chart": tabular, "graph": tabular,
	"diagram": tabular, "column": tabular, "columns": tabular, "row": tabular, "rows": tabular, "cell": tabular, "spreadsheet": tabular,
	"who": factual, "whom": factual, "whose": factual, "when": factual, "where": factual, "which": factual, "many": factual, "much": factual,
	"why": causal, "how": causal, "explain": causal, "describe": causal, "reason": causal,
	"compare": comparing, "compared": comparing, "difference": comparing, "differ": comparing, "versus": comparing, "vs": comparing,
	"between": comparing, "than": comparing, "or": comparing, "both": comparing,
}

// openers begin closed questions.
var openers = map[string]bool{
	"is": true, "are": true, "was": true, "were": true, "do": true, "does": true, "did": true, "has": true, "have": true, "can": true,
	"could": true, "may": true, "must": true, "should": true, "will": true, "would": true,
}

// FeaturesOf a query. Of other languages than English only the first four tell.
func FeaturesOf(query string) Features {
	var f Features
	words := 0
	for word := range strings.FieldsSeq(query) {
		word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if word == "" {
			continue
		}
		f.add(word, words == 0)
		words++
	}
	f[length] = float64(words)
	for i := length; i <= numbers; i++ {
		f[i] = math.Log1p(f[i])
	}
	return f
}

// add counts what a word looks like, and marks what it says.
func (f *Features) add(word string, first bool) {
	switch s := shapeOf(word); {
	case s.letters == 0:
		f[numbers]++
	case s.digits > 0, s.upper > 1 && s.upper == s.letters:
		f[codes]++
	case s.capital && !first:
		f[names]++
	}
	var buffer [maxKnown]byte
	known, ok := lower(word, &buffer)
	if !ok {
		return
	}
	if kind, ok := kinds[string(known)]; ok {
		f[kind] = 1
	}
	if first && openers[string(known)] {
		f[closed] = 1
	}
}

// shape of a word, in runes.
type shape struct {
	letters, upper, digits int
	capital                bool // the first
}

func shapeOf(word string) shape {
	var s shape
	for i, r := range word {
		switch {
		case unicode.IsDigit(r):
			s.digits++
		case unicode.IsLetter(r):
			s.letters++
		}
		if unicode.IsUpper(r) {
			s.upper++
			s.capital = s.capital || i == 0
		}
	}
	return s
}

// maxKnown is the length of the longest known word.
const maxKnown = 11

// lower writes an ASCII word of known length into the buffer.
func lower(word string, buffer *[maxKnown]byte) ([]byte, bool) {
	if len(word) > maxKnown {
		return nil, false
	}
	for i := range len(word) {
		c := word[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buffer[i] = c
	}
	return buffer[:len(word)], true
}
