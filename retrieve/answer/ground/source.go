// Package ground compares what is said with what it is said to be from: numbers,
// units, dates, names, negations and words. It knows no meaning, so it proves
// nothing; what it rejects is not there.
package ground

import (
	"iter"
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

// MaxSource bounds the bytes of a source that are read.
const MaxSource = 256 << 10

// leastShared is the share of a sentence's words that its source must have.
const leastShared = 0.5

// Terms splits a text into stemmed words without stop words, as a collection's
// analyzer does.
type Terms func(text string) iter.Seq[[]byte]

// Language is what of a text's language matters here.
type Language struct {
	Terms        Terms
	CapitalNouns bool // as in German
}

// Source is a text that sentences are held against. It is safe for concurrent use.
type Source struct {
	language Language
	text     string // folded
	words    map[string]bool
	terms    map[string]bool
	initials string
	values   map[string][]measure // of each number
	units    map[string]bool
	dates    [][]date
	times    []int
	polarity polarity
}

// NewSource reads a text.
func NewSource(text string, l Language) *Source {
	text = normal(text[:min(len(text), MaxSource)])
	s := &Source{language: l, text: fold(text), words: map[string]bool{}, terms: map[string]bool{}, values: map[string][]measure{}}
	var rest string
	s.dates, rest = dates(text)
	s.times, rest = times(rest)
	var initials strings.Builder
	for _, w := range words(text) {
		s.words[w.folded], s.words[s.stem(w.folded)] = true, true
		initials.WriteString(first(w.folded))
	}
	s.initials = initials.String()
	for term := range l.Terms(s.text) {
		s.terms[string(term)] = true
	}
	left := words(rest)
	s.addNumbers(left)
	s.polarity = polarityOf(left, s.stem)
	return s
}

func (s *Source) addNumbers(text []word) {
	all, named := quantities(text)
	for _, q := range all {
		s.values[q.value] = append(s.values[q.value], q.measure)
		s.values[q.other] = append(s.values[q.other], q.measure)
	}
	s.units = named
	for _, readings := range s.dates {
		for _, d := range readings {
			if d.year > 0 {
				s.values[format(float64(d.year))] = append(s.values[format(float64(d.year))], measure{})
			}
		}
	}
}

// stem is the analyzer's term of one word, "" for a stop word.
func (s *Source) stem(folded string) string {
	for term := range s.language.Terms(folded) {
		return string(term)
	}
	return ""
}

// Faults of a sentence: what it says and the source does not. None does not mean
// that it is true.
func (s *Source) Faults(sentence string) []Fault {
	text := normal(sentence[:min(len(sentence), MaxSource)])
	var faults []Fault
	found := func(f Fault, wrong bool) {
		if wrong {
			faults = append(faults, f)
		}
	}
	days, rest := dates(text)
	hours, rest := times(rest)
	left := words(rest)
	numbers, named := quantities(left)
	found(Date, !s.hasDates(days) || !s.hasTimes(hours))
	found(Number, !s.hasNumbers(numbers))
	found(Unit, !s.hasUnits(numbers, named))
	found(Name, !s.hasNames(text))
	found(Negation, s.polarity.contradicts(polarityOf(left, s.stem)))
	found(Words, s.shared(text) < leastShared)
	return faults
}

func (s *Source) hasDates(days [][]date) bool {
	year := func(y int) bool { return s.values[format(float64(y))] != nil }
	for _, readings := range days {
		said := slices.ContainsFunc(readings, func(d date) bool {
			return slices.ContainsFunc(slices.Concat(s.dates...), func(have date) bool { return have.says(d, year) })
		})
		if !said {
			return false
		}
	}
	return true
}

func (s *Source) hasTimes(hours []int) bool {
	for _, t := range hours {
		if !slices.Contains(s.times, t) {
			return false
		}
	}
	return true
}

func (s *Source) hasNumbers(all []quantity) bool {
	for _, q := range all {
		if s.values[q.value] == nil && s.values[q.other] == nil && !q.bare {
			return false
		}
	}
	return true
}

// hasUnits: each unit is named, and a number measures what it measures in the
// source, where it measures something there.
func (s *Source) hasUnits(all []quantity, named map[string]bool) bool {
	for unit := range named {
		if !s.units[unit] {
			return false
		}
	}
	for _, q := range all {
		have := slices.Concat(s.values[q.value], s.values[q.other])
		if len(have) > 0 && !slices.ContainsFunc(have, q.measure.fits) {
			return false
		}
	}
	return true
}

func (s *Source) hasNames(text string) bool {
	for _, run := range names(words(text), s.language.CapitalNouns) {
		if !s.mentionsRun(run) {
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

// shared is the share of the sentence's terms that the source has; of none, 0.
func (s *Source) shared(text string) float64 {
	have, all := 0, 0
	for term := range s.language.Terms(fold(text)) {
		if all++; s.terms[string(term)] {
			have++
		}
	}
	return float64(have) / float64(max(all, 1))
}
