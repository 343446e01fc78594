package ground

import "slices"

const (
	// leastShared is the share of a sentence's words that a line of its source has.
	leastShared = 0.5
	// leastAdded is the share of those words that the question has not: to repeat the
	// question is to say nothing. Words count by how rare they are in what was shown.
	leastAdded = 0.5
)

// line is what one sentence of a source says.
type line struct {
	above    *line // what its titles say; nil: it has none
	section  int   // which its titles are of its source's
	terms    map[string]bool
	values   map[string][]measure // of each number
	units    map[string]bool
	dates    [][]date
	times    []int
	polarity polarity
}

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

func (l line) hasUnit(unit string) bool { return l.units[unit] || l.titles().units[unit] }

// measures are those of a number; none: it isn't there.
func (l line) measures(value string) []measure {
	return slices.Concat(l.values[value], l.titles().values[value])
}

// faults of what is said, by the shares of its words that the line has.
func (l line) faults(read said, whole, added float64) []Fault {
	var faults []Fault
	found := func(f Fault, wrong bool) {
		if wrong {
			faults = append(faults, f)
		}
	}
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
