package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a clause looks for.
type Kind uint8

const (
	Word   Kind = iota // a term
	Phrase             // terms at given distances from each other
	Prefix             // any term that begins so, or is one of the terms
)

// Clause is one thing a query looks for. Its value in a row counts like that of
// a term: how often it occurs there, and in how many rows it does.
type Clause struct {
	Kind    Kind
	Terms   []string
	Offsets []uint32 // Phrase: of each term's position to the first's
	Prefix  string
	Weight  uint32 // how often the query has it
}

// Of one query. What is more is plain words: each phrase and prefix gets a list
// of its own, as long as there are rows.
const (
	maxPhrases  = 64
	maxPrefixes = 32
)

// minPrefix is how many letters a word before a star needs; one ideograph is enough.
const minPrefix = 3

// Parse splits a query into its clauses, equal ones joined, in the order of
// their first occurrence. Every text is a query: what is not written as a
// phrase or prefix should be is a plain word.
//
//	disk failover        each word for itself
//	"disk failover"      the words, and the two next to each other
//	replic*              words that begin with replic
func (a Analyzer) Parse(query string) []Clause {
	p := parser{analyzer: a, at: map[string]int{}}
	query = strings.Map(straight, query)
	rest, prefixes := cutPrefixes(query)
	for term := range a.Terms(rest) {
		p.add(Clause{Kind: Word, Terms: []string{string(term)}})
	}
	for _, phrase := range quoted(query) {
		p.phrase(phrase)
	}
	for _, prefix := range prefixes {
		p.prefix(prefix)
	}
	return p.clauses
}

// straight makes typographic double quotes plain.
func straight(r rune) rune {
	switch r {
	case '“', '”', '„':
		return '"'
	}
	return r
}

// parser gathers distinct clauses.
type parser struct {
	analyzer Analyzer
	clauses  []Clause
	at       map[string]int
}

func (p *parser) add(c Clause) {
	key := c.key()
	i, known := p.at[key]
	if !known {
		i = len(p.clauses)
		p.at[key] = i
		p.clauses = append(p.clauses, c)
	}
	p.clauses[i].Weight++
}

// key is the same for equal clauses only.
func (c Clause) key() string {
	key := append([]byte{byte(c.Kind)}, c.Prefix...)
	for i, term := range c.Terms {
		key = append(append(key, 0), term...)
		if c.Kind == Phrase {
			key = strconv.AppendUint(append(key, 0), uint64(c.Offsets[i]), 10)
		}
	}
	return string(key)
}

func (p *parser) phrase(quoted string) {
	c, first := Clause{Kind: Phrase}, 0
	for position, term := range p.analyzer.Places(quoted) {
		if len(c.Terms) == 0 {
			first = position
		}
		c.Terms = append(c.Terms, string(term))
		c.Offsets = append(c.Offsets, uint32(position-first))
	}
	if len(c.Terms) > 1 {
		p.add(c)
	}
}

// prefix also takes the terms of the word itself, so that a star never finds
// less than the word alone, whose stem may be another. What is more than one
// term is just words.
func (p *parser) prefix(word string) {
	c := Clause{Kind: Prefix, Prefix: strings.ToLower(word)}
	for term := range p.analyzer.Terms(word) {
		c.Terms = append(c.Terms, string(term))
	}
	if len(c.Terms) <= 1 && len(c.Prefix) <= MaxTermBytes {
		p.add(c)
		return
	}
	for _, term := range c.Terms {
		p.add(Clause{Kind: Word, Terms: []string{term}})
	}
}

// quoted returns what stands between each two double quotes.
func quoted(query string) (phrases []string) {
	pieces := strings.Split(query, `"`)
	for i := 1; i+1 < len(pieces) && len(phrases) < maxPhrases; i += 2 {
		phrases = append(phrases, pieces[i])
	}
	return phrases
}

// cutPrefixes takes words with a star out of the query: a run of letters and
// digits, long enough, between something else and a single star that ends the
// word. `**bold**`, `*slanted*` and `2*3` are none. The rest is words.
func cutPrefixes(query string) (rest string, prefixes []string) {
	var kept strings.Builder
	done := 0
	for i := range len(query) {
		if query[i] != '*' {
			continue
		}
		word := lastWord(query[done:i])
		if start := i - len(word); len(prefixes) < maxPrefixes && long(word) && endsAt(query, i) && (start == 0 || query[start-1] != '*') {
			prefixes = append(prefixes, word)
			kept.WriteString(query[done:start])
		} else {
			kept.WriteString(query[done:i])
		}
		kept.WriteByte(' ')
		done = i + 1
	}
	kept.WriteString(query[done:])
	return kept.String(), prefixes
}

// endsAt reports whether neither a letter nor another star follows the star.
func endsAt(query string, star int) bool {
	next, _ := utf8.DecodeRuneInString(query[star+1:])
	return next != '*' && !letter(next)
}

func lastWord(s string) string { return s[len(strings.TrimRightFunc(s, letter)):] }

func letter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_'
}

func long(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return utf8.RuneCountInString(word) >= minPrefix || unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
