package ground

import (
	"regexp"
	"slices"
	"strings"
)

// literal is what must be written as it is: addresses, links, channels.
var literal = regexp.MustCompile(`[\p{L}\p{N}.+_-]+@[\p{L}\p{N}-]+\.[\p{L}\p{N}.-]+|\b\p{L}+://\S+|\bwww\.\S+|[#@][\p{L}\p{N}][\p{L}\p{N}_-]*`)

// calendar is names that are dates, or parts of them.
var calendar = set(strings.Join(months, " ") + " jan feb mar apr jun jul aug sep sept oct nov dec i am pm")

// ranks tell apart those who share a role.
var ranks = set("senior junior staff chief deputy principal director executive manager officer president contractor intern")

// Names of a question: what it asks about that only its own name stands for:
// names, codes, and the ranks of roles. Where nouns are written with a capital,
// as in German, a capital makes no name.
func Names(question string, capitalNouns bool) []string {
	var all []string
	for _, run := range names(words(normal(question)), capitalNouns) {
		all = append(all, run...)
	}
	for _, w := range words(normal(question)) {
		if ranks[strings.TrimSuffix(w.folded, "s")] {
			all = append(all, w.text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// names are runs of neighbouring names.
func names(text []word, capitalNouns bool) (runs [][]string) {
	last := -2
	for i, w := range text {
		if !named(w, capitalNouns) {
			continue
		}
		if last == i-1 && !w.after {
			runs[len(runs)-1] = append(runs[len(runs)-1], w.text)
		} else {
			runs = append(runs, []string{w.text})
		}
		last = i
	}
	return runs
}

func named(w word, capitalNouns bool) bool {
	if calendar[w.folded] || units[w.folded] != "" || strings.HasPrefix(w.folded, "i'") {
		return false
	}
	return w.code() || w.capital() && !w.opens && !capitalNouns
}

// Capitals are the names that a text has, wherever they stand in it.
func Capitals(text string) []string {
	var all []string
	for _, w := range words(normal(text)) {
		if w.code() || w.capital() {
			all = append(all, w.text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Mentions reports that the source has the name: the word, one of its stem, or
// words that it is short for (SSO: single sign-on).
func (s *Source) Mentions(name string) bool {
	folded := fold(strings.TrimSuffix(normal(name), "'s"))
	return s.words[folded] || s.words[s.stem(folded)] || short(name) && strings.Contains(s.initials, folded)
}

// short reports an acronym.
func short(name string) bool {
	return len(name) >= 2 && len(name) <= 6 && strings.ToUpper(name) == name && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// mentionsRun: every name, or what they are together short for (United States: US).
func (s *Source) mentionsRun(run []string) bool {
	var initials strings.Builder
	whole := true
	for _, name := range run {
		whole = whole && s.Mentions(name)
		initials.WriteString(first(fold(name)))
	}
	return whole || len(run) > 1 && s.words[initials.String()]
}
