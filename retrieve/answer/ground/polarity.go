package ground

import "strings"

// negators turn around what follows them.
var negators = set(`not no never none nobody nothing neither nor without cannot
	nicht kein keine keinen keiner keinem nie niemals ohne pas jamais sans aucun aucune nunca ningun ninguna niet geen nooit zonder nao
	` + strings.Join(strings.Split(hanNegators, ""), " "))

// negatives deny something without a negator.
var negatives = set(`only unless except excluding excludes excluded reject rejects rejected deny denies denied forbid forbids forbidden prohibit prohibits prohibited
	ban banned fail fails failed lack lacks ends ended stops stopped expires expired ineligible unavailable unable impossible invalid void`)

// trailing negators follow what they turn around, too.
var trailing = set("nicht pas niet")

// Between these, what turns around one alternative ends with it: "either not A or B".
var (
	eithers = set("either entweder")
	ors     = set("or oder")
)

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(words) {
		all[w] = true
	}
	return all
}

var bounds = set("more less fewer later longer earlier sooner only")

// negationReach is how many words a negator turns around, within its clause; of
// Chinese, pairs of characters.
const (
	negationReach    = 2
	hanNegationReach = 4
)

// polarity is which words of a text are said, and which are said not to be.
type polarity struct {
	denies            bool // there is a negator
	negative          bool // or a word that denies
	affirmed, negated map[string]bool
}

func (l *Language) polarityOf(text []word) polarity {
	p := polarity{affirmed: map[string]bool{}, negated: map[string]bool{}}
	left := 0 // words that the last negator still turns around
	last, either := "", false
	for i, w := range text {
		if w.after {
			left, last = 0, ""
		}
		if eithers[w.folded] {
			either = left == 0
			continue
		}
		if either && ors[w.folded] {
			left, either = 0, false
		}
		if trailing[w.folded] && last != "" {
			p.negated[last] = true
			delete(p.affirmed, last)
		}
		if (negators[w.folded] || strings.HasSuffix(w.folded, "n't")) && !bound(text, i) {
			p.denies, left = true, negationReach
			if strings.Contains(hanNegators, w.folded) {
				left = hanNegationReach
			}
			continue
		}
		p.negative = p.negative || negatives[w.folded]
		if w.number() || ones[w.folded] > 0 {
			continue
		}
		for _, term := range l.content(w.folded) {
			if left > 0 {
				p.negated[term], left = true, left-1
			} else {
				p.affirmed[term], last = true, term
			}
		}
	}
	return p
}

// bound reports "no more than", "not only": these deny nothing.
func bound(text []word, i int) bool {
	return i+1 < len(text) && bounds[text[i+1].folded]
}

// contradicts reports that a sentence turns around what the source says, or
// denies something of which the source denies nothing.
func (source polarity) contradicts(sentence polarity) bool {
	if sentence.denies && !source.denies && !source.negative {
		return true
	}
	for term := range sentence.negated {
		if source.affirmed[term] && !source.negated[term] {
			return true
		}
	}
	for term := range source.negated {
		if sentence.affirmed[term] && !source.affirmed[term] {
			return true
		}
	}
	return false
}
