package ground

import "iter"

// Terms splits a text into stemmed words without stop words, as a collection's
// analyzer does.
type Terms func(text string) iter.Seq[[]byte]

// Language is what of a text's language matters here. It belongs to one goroutine.
type Language struct {
	terms        Terms
	capitalNouns bool
	known        map[string][]string // content of words: an analyzer takes long for one
}

// NewLanguage returns one; with capitalNouns, nouns are written with a capital,
// as in German.
func NewLanguage(terms Terms, capitalNouns bool) *Language {
	return &Language{terms: terms, capitalNouns: capitalNouns, known: map[string][]string{}}
}

// content are the terms of a word: none of a stop word, one of most, and of
// Chinese the pairs of its characters.
func (l *Language) content(folded string) []string {
	content, known := l.known[folded]
	if known {
		return content
	}
	for term := range l.terms(folded) {
		content = append(content, string(term))
	}
	l.known[folded] = content
	return content
}

// stem is the first term of a word, "" for a stop word.
func (l *Language) stem(folded string) string {
	for _, term := range l.content(folded) {
		return term
	}
	return ""
}
