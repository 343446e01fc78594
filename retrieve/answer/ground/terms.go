package ground

import (
	"slices"
	"strconv"
)

// addTerms adds what a text is about: its words as the analyzer has them, without
// negators; numbers, units, months and times of the day by their one name.
func (l *Language) addTerms(out *said, text []word) {
	for _, w := range text {
		switch unit := units[w.folded]; {
		case numeric(w) || negators[w.folded]:
		case unit != "":
			out.terms["unit "+unit] = true
		default:
			for _, term := range l.content(w.folded) {
				out.terms[term] = true
			}
		}
	}
	for _, q := range out.numbers {
		if !q.bare {
			out.terms[q.value] = true
		}
	}
	for _, readings := range out.dates {
		out.terms[months[readings[0].month-1]] = true
	}
	for _, t := range out.times {
		out.terms["time "+strconv.Itoa(t)] = true
	}
}

// numeric reports a word that is a number, or may be a part of one.
func numeric(w word) bool {
	_, one := ones[w.folded]
	_, scale := scales[w.folded]
	_, ordinal := ordinals[w.folded]
	return w.number() || one || scale || ordinal
}

// share is what something has of the terms of a statement, by their weights: of
// all, and of those that the question has not. The sums are exact.
type share struct{ all, beyond float64 }

func (s *share) add(weight float64, asked bool) {
	if s.all += weight; !asked {
		s.beyond += weight
	}
}

// share adds up what each title and each line has of terms, and returns what there
// is to have.
func (s *Source) share(terms map[string]bool, c Context) (all share) {
	s.shares = slices.Grow(s.shares[:0], len(s.titles)+len(s.lines))[:len(s.titles)+len(s.lines)]
	clear(s.shares)
	for term := range terms {
		weight, asked := c.weight(term), c.asked[term]
		all.add(weight, asked)
		in := s.in[term]
		for _, i := range in.titles {
			s.shares[i].add(weight, asked)
		}
		for _, i := range in.lines {
			s.shares[len(s.titles)+i].add(weight, asked)
		}
	}
	return all
}

// sharesOf are the shares of a statement's terms that a line has, its titles'
// among them: of all terms (of none, 0), and of those that the question has not
// (of none, 1).
func (s *Source) sharesOf(line int, all share) (whole, added float64) {
	own, above := s.shares[len(s.titles)+line], s.shares[s.lines[line].section]
	if added = 1; all.beyond > 0 {
		added = (own.beyond + above.beyond) / all.beyond
	}
	if all.all > 0 {
		whole = (own.all + above.all) / all.all
	}
	return whole, added
}
