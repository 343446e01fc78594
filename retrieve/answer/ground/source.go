// Package ground compares what is said with what it is said to be from: numbers,
// units, dates, names, negations and words. It knows no meaning, so it proves
// nothing; what it rejects is not there.
package ground

import (
	"maps"
	"slices"
	"strings"
)

// Fault is why a sentence does not stand.
type Fault string

// Faults.
const (
	Number   Fault = "number"
	Unit     Fault = "unit"
	Date     Fault = "date"
	Name     Fault = "name"
	Negation Fault = "negation"
	Words    Fault = "words"
	Question Fault = "question" // it asks, and claims nothing
)

// MaxSource bounds the bytes of a source or a sentence that are read.
const MaxSource = 64 << 10

// Section of a source: a text, and the titles that hold for all of it.
type Section struct{ Titles, Text string }

// Source is what is said to say something. Sources of one Language belong to one
// goroutine.
type Source struct {
	language *Language
	text     string          // folded
	words    map[string]bool // of the whole, and their stems
	initials string
	terms    map[string]bool // of all lines
	lines    []line
}

// NewSource reads sections.
func NewSource(sections []Section, l *Language) *Source {
	s := &Source{language: l, words: map[string]bool{}, terms: map[string]bool{}}
	var text, initials strings.Builder
	for _, section := range sections {
		titles, body := bounded(section.Titles), bounded(section.Text)
		above := l.line(titles)
		maps.Copy(s.terms, above.terms)
		for _, sentence := range sentences(body) {
			below := l.line(sentence)
			below.above = &above
			maps.Copy(s.terms, below.terms)
			s.lines = append(s.lines, below)
		}
		text.WriteString(titles + "\n" + body + "\n")
	}
	for _, w := range words(text.String()) {
		s.words[w.folded], s.words[l.stem(w.folded)] = true, true
		initials.WriteString(first(w.folded))
	}
	s.text, s.initials = fold(text.String()), initials.String()
	return s
}

func bounded(text string) string { return normal(text[:min(len(text), MaxSource)]) }

// Faults of what is said in a context: what no sentence of the source says. A
// sentence may also be put together of parts that are said one by one. No fault
// does not mean that it is true.
func (s *Source) Faults(text string, c Context) []Fault { return s.FaultsOf(Part{Text: text}, c) }

// FaultsOf are those of a part.
func (s *Source) FaultsOf(part Part, c Context) []Fault {
	text := bounded(part.Text)
	if !s.hasNames(text, part.inside) {
		return []Fault{Name}
	}
	all := sentences(text)
	if len(all) == 0 {
		return []Fault{Words}
	}
	for _, sentence := range all {
		if asks(sentence) {
			return []Fault{Question}
		}
		if faults := s.least(sentence, c); len(faults) > 0 && !s.hasParts(sentence, c) {
			return faults
		}
	}
	return nil
}

// hasParts reports a sentence of several parts that the source says one by one.
func (s *Source) hasParts(sentence string, c Context) bool {
	parts := s.language.parts(sentence)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return len(s.least(part, c)) > 0 })
}

// least is nothing if a line says the sentence, else the faults of the line
// that has most of its words.
func (s *Source) least(sentence string, c Context) []Fault {
	read, most := s.language.read(sentence), -1.0
	least := []Fault{Words}
	for _, l := range s.lines {
		faults := l.faults(read, c)
		if len(faults) == 0 {
			return nil
		}
		if shared, _ := l.shares(read.terms, c); shared > most {
			least, most = faults, shared
		}
	}
	return least
}

// HasMoney reports an amount of money anywhere in the source.
func (s *Source) HasMoney() bool {
	return slices.ContainsFunc(s.lines, func(l line) bool {
		return slices.ContainsFunc(currencies, l.hasUnit)
	})
}

func (s *Source) hasNames(text string, inside bool) bool {
	all := words(text)
	if inside && len(all) > 0 {
		all[0].opens = false
	}
	for _, name := range names(all, s.language.capitalNouns) {
		if !s.Mentions(name) {
			return false
		}
	}
	for _, link := range literal.FindAllString(text, -1) {
		if !strings.Contains(s.text, fold(strings.TrimRight(link, ".,;:!?)\"'"))) {
			return false
		}
	}
	return true
}
