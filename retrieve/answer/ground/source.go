// Package ground compares what is said with what it is said to be from: numbers,
// units, dates, names, negations and words. It knows no meaning, so it proves
// nothing; what it rejects is not there.
package ground

import (
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
	titles   []line
	lines    []line
	in       map[string]places // by term
	shares   []share           // of the titles, then of the lines: what they have of the statement that is compared
}

// places have a term: the numbers of titles, and of lines whose titles have it not.
type places struct{ titles, lines []int }

// NewSource reads sections.
func NewSource(sections []Section, l *Language) *Source {
	s := &Source{language: l, words: map[string]bool{}, in: map[string]places{}}
	var text, initials strings.Builder
	for _, section := range sections {
		titles, body := bounded(section.Titles), bounded(section.Text)
		s.addSection(titles, sentences(body))
		text.WriteString(titles + "\n" + body + "\n")
	}
	for _, w := range words(text.String()) {
		s.words[w.folded], s.words[l.stem(w.folded)] = true, true
		initials.WriteString(first(w.folded))
	}
	s.text, s.initials = fold(text.String()), initials.String()
	return s
}

func (s *Source) addSection(titles string, body []string) {
	at, above := len(s.titles), s.language.line(titles)
	s.titles = append(s.titles, above)
	for term := range above.terms {
		p := s.in[term]
		p.titles = append(p.titles, at)
		s.in[term] = p
	}
	for _, sentence := range body {
		below := s.language.line(sentence)
		below.above, below.section = &above, at
		for term := range below.terms {
			if !above.terms[term] {
				p := s.in[term]
				p.lines = append(p.lines, len(s.lines))
				s.in[term] = p
			}
		}
		s.lines = append(s.lines, below)
	}
}

func bounded(text string) string { return normal(text[:min(len(text), MaxSource)]) }

// Faults of what is said in a context: what no sentence of the source says. A
// sentence may also be put together of parts that are said one by one. No fault
// does not mean that it is true.
func (s *Source) Faults(text string, c Context) []Fault {
	return s.FaultsOf(s.language.Claim(Part{Text: text}), c)
}

// FaultsOf are those of a claim.
func (s *Source) FaultsOf(claim *Claim, c Context) []Fault {
	if !s.hasNames(claim) {
		return []Fault{Name}
	}
	if len(claim.statements) == 0 {
		return []Fault{Words}
	}
	for _, said := range claim.statements {
		if said.asks {
			return []Fault{Question}
		}
		if faults := s.least(said, c); len(faults) > 0 && !s.hasParts(said, c) {
			return faults
		}
	}
	return nil
}

// hasParts reports a statement of several parts that the source says one by one.
func (s *Source) hasParts(said *statement, c Context) bool {
	parts := s.language.partsOf(said)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part *statement) bool { return len(s.least(part, c)) > 0 })
}

// least is nothing if a line says the statement, else the faults of the line
// that has most of its words.
func (s *Source) least(said *statement, c Context) []Fault {
	all := s.share(said.terms, c)
	best, most := -1, -1.0
	for i := range s.lines {
		whole, added := s.sharesOf(i, all)
		if whole > most {
			best, most = i, whole
		}
		if whole >= leastShared && len(s.lines[i].faults(said.said, whole, added)) == 0 {
			return nil
		}
	}
	if best < 0 {
		return []Fault{Words}
	}
	whole, added := s.sharesOf(best, all)
	return s.lines[best].faults(said.said, whole, added)
}

// HasMoney reports an amount of money anywhere in the source.
func (s *Source) HasMoney() bool {
	return slices.ContainsFunc(s.lines, func(l line) bool {
		return slices.ContainsFunc(currencies, l.hasUnit)
	})
}

func (s *Source) hasNames(claim *Claim) bool {
	return !slices.ContainsFunc(claim.names, func(m mention) bool { return !s.mentions(m) }) &&
		!slices.ContainsFunc(claim.links, func(link string) bool { return !strings.Contains(s.text, link) })
}
