// Package ground compares what is said with what it is said to be from: numbers,
// units, dates, names, negations and words. It knows no meaning, so it proves
// nothing; what it rejects is not there.
package ground

import (
	"iter"
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
)

// MaxSource bounds the bytes of a source or a sentence that are read.
const MaxSource = 64 << 10

const (
	// leastShared is the share of a sentence's words that its source must have.
	leastShared = 0.5
	// leastWords is how many words a part of a sentence has at least, to be held
	// against the source by itself.
	leastWords = 3
)

// Terms splits a text into stemmed words without stop words, as a collection's
// analyzer does.
type Terms func(text string) iter.Seq[[]byte]

// Language is what of a text's language matters here.
type Language struct {
	Terms        Terms
	CapitalNouns bool // as in German
}

// Section of a source: a text, and the titles that hold for all of it.
type Section struct{ Titles, Text string }

// Source is what is said to say something. It is safe for concurrent use.
type Source struct {
	language Language
	text     string          // folded
	words    map[string]bool // of the whole, and their stems
	initials string
	lines    []line
}

// line is what one sentence of a source says, with its titles.
type line struct {
	terms    map[string]bool
	values   map[string][]measure // of each number
	units    map[string]bool
	dates    [][]date
	times    []int
	polarity polarity
}

// NewSource reads sections.
func NewSource(sections []Section, l Language) *Source {
	s := &Source{language: l, words: map[string]bool{}}
	var text, initials strings.Builder
	for _, section := range sections {
		titles, body := bounded(section.Titles), bounded(section.Text)
		above := s.read(titles)
		for _, sentence := range sentences(body) {
			s.lines = append(s.lines, above.with(s.read(sentence)))
		}
		text.WriteString(titles + "\n" + body + "\n")
	}
	for _, w := range words(text.String()) {
		s.words[w.folded], s.words[s.stem(w.folded)] = true, true
		initials.WriteString(first(w.folded))
	}
	s.text, s.initials = fold(text.String()), initials.String()
	return s
}

func bounded(text string) string { return normal(text[:min(len(text), MaxSource)]) }

// stem is the analyzer's term of one word, "" for a stop word.
func (s *Source) stem(folded string) string {
	for term := range s.language.Terms(folded) {
		return string(term)
	}
	return ""
}

// said is what one sentence says.
type said struct {
	line
	numbers []quantity
}

func (s *Source) read(text string) said {
	out := said{line: line{terms: map[string]bool{}, values: map[string][]measure{}}}
	for term := range s.language.Terms(fold(text)) {
		out.terms[string(term)] = true
	}
	var rest string
	out.dates, rest = dates(text)
	out.times, rest = times(rest)
	left := words(rest)
	out.numbers, out.units = quantities(left)
	out.polarity = polarityOf(left, s.stem)
	for _, q := range out.numbers {
		out.values[q.value] = append(out.values[q.value], q.measure)
		if q.other != q.value {
			out.values[q.other] = append(out.values[q.other], q.measure)
		}
	}
	for _, d := range slices.Concat(out.dates...) {
		if year := format(float64(d.year)); d.year > 0 {
			out.values[year] = append(out.values[year], measure{})
		}
	}
	return out
}

// with is a sentence under titles: these deny nothing.
func (above said) with(below said) line {
	l := below.line
	l.dates, l.times = slices.Concat(l.dates, above.dates), slices.Concat(l.times, above.times)
	for value, measures := range above.values {
		l.values[value] = append(l.values[value], measures...)
	}
	maps.Copy(l.terms, above.terms)
	maps.Copy(l.units, above.units)
	return l
}

// Faults of what is said: what no sentence of the source says. A sentence may
// also be put together of parts that are said one by one. No fault does not mean
// that it is true.
func (s *Source) Faults(text string) []Fault {
	text = bounded(text)
	if !s.hasNames(text) {
		return []Fault{Name}
	}
	all := sentences(text)
	if len(all) == 0 {
		return []Fault{Words}
	}
	for _, sentence := range all {
		if faults := s.least(sentence); len(faults) > 0 && !s.hasParts(sentence) {
			return faults
		}
	}
	return nil
}

// hasParts reports a sentence of several parts that the source says one by one.
func (s *Source) hasParts(sentence string) bool {
	parts := s.parts(sentence)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return len(s.least(part)) > 0 })
}

// least is nothing if a line says the sentence, else the faults of the line
// that has most of its words.
func (s *Source) least(sentence string) []Fault {
	read, most := s.read(sentence), -1.0
	least := []Fault{Words}
	for _, l := range s.lines {
		faults := l.faults(read)
		if len(faults) == 0 {
			return nil
		}
		if shared := l.shared(read.terms); shared > most {
			least, most = faults, shared
		}
	}
	return least
}

// parts of a sentence between commas, semicolons and conjunctions; nil if one
// of them is too short to say something.
func (s *Source) parts(text string) []string {
	parts := joints.Split(text, -1)
	for _, part := range parts {
		n := 0
		for range s.language.Terms(fold(part)) {
			n++
		}
		if n < leastWords {
			return nil
		}
	}
	return parts
}

func (l line) faults(read said) []Fault {
	var faults []Fault
	found := func(f Fault, wrong bool) {
		if wrong {
			faults = append(faults, f)
		}
	}
	found(Words, l.shared(read.terms) < leastShared)
	found(Date, !l.hasDates(read.dates) || !l.hasTimes(read.times))
	found(Number, !l.hasNumbers(read.numbers))
	found(Unit, !l.hasUnits(read.numbers, read.units))
	found(Negation, l.polarity.contradicts(read.polarity))
	return faults
}

func (l line) hasDates(days [][]date) bool {
	year := func(y int) bool { return l.values[format(float64(y))] != nil }
	have := slices.Concat(l.dates...)
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
		if !slices.Contains(l.times, t) {
			return false
		}
	}
	return true
}

func (l line) hasNumbers(all []quantity) bool {
	for _, q := range all {
		if l.values[q.value] == nil && l.values[q.other] == nil && !q.bare {
			return false
		}
	}
	return true
}

// hasUnits: each unit is named, and a number measures what it measures in the
// source, where it measures something there.
func (l line) hasUnits(all []quantity, named map[string]bool) bool {
	for unit := range named {
		if !l.units[unit] {
			return false
		}
	}
	for _, q := range all {
		have := slices.Concat(l.values[q.value], l.values[q.other])
		if len(have) > 0 && !slices.ContainsFunc(have, q.measure.fits) {
			return false
		}
	}
	return true
}

// shared is the share of the terms that the line has; of none, 0.
func (l line) shared(terms map[string]bool) float64 {
	have := 0
	for term := range terms {
		if l.terms[term] {
			have++
		}
	}
	return float64(have) / float64(max(len(terms), 1))
}

// HasMoney reports an amount of money anywhere in the source.
func (s *Source) HasMoney() bool {
	return slices.ContainsFunc(s.lines, func(l line) bool {
		return slices.ContainsFunc(currencies, func(c string) bool { return l.units[c] })
	})
}

func (s *Source) hasNames(text string) bool {
	for _, name := range names(words(text), s.language.CapitalNouns) {
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
