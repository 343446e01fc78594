package ground

import "strconv"

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

// shares are the shares of a sentence's terms that the line has, by their
// weights: of all of them (of none, 0), and of those that the question has not
// (of none, 1).
func (l line) shares(terms map[string]bool, c Context) (whole, added float64) {
	var all, have, beyond, haveBeyond float64
	for term := range terms {
		w, had := c.weight(term), 0.0
		if l.hasTerm(term) {
			had = w
		}
		all, have = all+w, have+had
		if !c.asked[term] {
			beyond, haveBeyond = beyond+w, haveBeyond+had
		}
	}
	if added = 1; beyond > 0 {
		added = haveBeyond / beyond
	}
	if all > 0 {
		whole = have / all
	}
	return whole, added
}
