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

const (
	// leastShared is the share of a sentence's words that a line of its source has.
	leastShared = 0.5
	// leastAdded is the share of those words that the question has not: to repeat the
	// question is to say nothing. Words count by how rare they are in what was shown.
	leastAdded = 0.5
)

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

// line is what one sentence of a source says.
type line struct {
	above    *line // what its titles say; nil: it has none
	terms    map[string]bool
	values   map[string][]measure // of each number
	units    map[string]bool
	dates    [][]date
	times    []int
	polarity polarity
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

// said is what one sentence says.
type said struct {
	line
	numbers []quantity
}

func (l *Language) read(text string) said {
	out := said{line: line{terms: map[string]bool{}, values: map[string][]measure{}}}
	var rest string
	out.dates, rest = dates(text)
	out.times, rest = times(rest)
	left := words(rest)
	out.numbers, out.units = quantities(left)
	out.polarity = l.polarityOf(left)
	l.addTerms(&out, left)
	for _, q := range out.numbers {
		out.add(q.value, q.measure)
		out.add(q.other, q.measure)
	}
	for _, d := range slices.Concat(out.dates...) {
		if d.year > 0 {
			out.add(format(float64(d.year)), measure{})
		}
	}
	return out
}

// add keeps each measure of a number once.
func (l line) add(value string, m measure) {
	if !slices.Contains(l.values[value], m) {
		l.values[value] = append(l.values[value], m)
	}
}

// line is a text of a source: numbers are words of it, in all readings.
func (l *Language) line(text string) line {
	read := l.read(text).line
	for value := range read.values {
		read.terms[value] = true
	}
	return read
}

// titles are what is above a line.
func (l line) titles() line {
	if l.above == nil {
		return line{}
	}
	return *l.above
}

func (l line) hasTerm(term string) bool { return l.terms[term] || l.titles().terms[term] }

func (l line) hasUnit(unit string) bool { return l.units[unit] || l.titles().units[unit] }

// measures are those of a number; none: it isn't there.
func (l line) measures(value string) []measure {
	return slices.Concat(l.values[value], l.titles().values[value])
}

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

// asks reports a question. NFKC has made all question marks of two scripts one.
func asks(sentence string) bool {
	return strings.HasSuffix(strings.TrimRight(sentence, " \t\n\"')]!.”’»"), "?")
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

func (l line) faults(read said, c Context) []Fault {
	var faults []Fault
	found := func(f Fault, wrong bool) {
		if wrong {
			faults = append(faults, f)
		}
	}
	whole, added := l.shares(read.terms, c)
	found(Words, whole < leastShared)
	found(Date, !l.hasDates(read.dates) || !l.hasTimes(read.times))
	found(Number, !l.hasNumbers(read.numbers))
	found(Unit, !l.hasUnits(read.numbers, read.units))
	found(Negation, l.polarity.contradicts(read.polarity))
	found(Words, whole >= leastShared && added < leastAdded)
	return faults
}

func (l line) hasDates(days [][]date) bool {
	if len(days) == 0 {
		return true
	}
	year := func(y int) bool { return len(l.measures(format(float64(y)))) > 0 }
	have := slices.Concat(slices.Concat(l.dates...), slices.Concat(l.titles().dates...))
	for _, readings := range days {
		said := slices.ContainsFunc(readings, func(d date) bool {
			return slices.ContainsFunc(have, func(h date) bool { return h.says(d, year) })
		})
		if !said {
			return false
		}
	}
	return true
}

func (l line) hasTimes(hours []int) bool {
	for _, t := range hours {
		if !slices.Contains(l.times, t) && !slices.Contains(l.titles().times, t) {
			return false
		}
	}
	return true
}

func (l line) hasNumbers(all []quantity) bool {
	for _, q := range all {
		if len(l.measures(q.value)) == 0 && len(l.measures(q.other)) == 0 && !q.bare {
			return false
		}
	}
	return true
}

// hasUnits: each unit is named, and a number measures what it measures in the
// source, where it measures something there.
func (l line) hasUnits(all []quantity, named map[string]bool) bool {
	for unit := range named {
		if !l.hasUnit(unit) {
			return false
		}
	}
	for _, q := range all {
		have := slices.Concat(l.measures(q.value), l.measures(q.other))
		if len(have) > 0 && !slices.ContainsFunc(have, q.measure.fits) {
			return false
		}
	}
	return true
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
