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
// names and codes. Neighbours are one name.
func Names(question string, l *Language) []string {
	question = bounded(question)
	if strings.ToUpper(question) == question {
		return nil // in capitals all through
	}
	return names(words(question), l.capitalNouns)
}

// Ranks of a question: the words, in English, that tell apart those who share a role.
func Ranks(question string) (all []string) {
	for _, w := range words(bounded(question)) {
		if ranks[strings.TrimSuffix(w.folded, "s")] {
			all = append(all, w.text)
		}
	}
	return all
}

// names are runs of neighbouring names, joined by spaces. Where nouns are written
// with a capital, as in German, a capital makes no name.
func names(text []word, capitalNouns bool) (runs []string) {
	last := -2
	for i, w := range text {
		if !named(w, capitalNouns) {
			continue
		}
		if last == i-1 && !w.after {
			runs[len(runs)-1] += " " + w.text
		} else {
			runs = append(runs, w.text)
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
	for _, w := range words(bounded(text)) {
		if w.code() || w.capital() {
			all = append(all, w.text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mention is a name as sources are searched for it.
type mention struct {
	words    []mentioned
	initials string
}

type mentioned struct {
	folded, stem string
	short        bool
}

func (l *Language) mention(name string) (m mention) {
	var initials strings.Builder
	for _, w := range words(bounded(name)) {
		m.words = append(m.words, mentioned{w.folded, l.stem(w.folded), short(w.text)})
		initials.WriteString(first(w.folded))
	}
	m.initials = initials.String()
	return m
}

// Mentions reports that the source has the words of a name, or what it is short
// for (SSO: single sign-on), or what is short for it (United States: US).
func (s *Source) Mentions(name string) bool { return s.mentions(s.language.mention(name)) }

func (s *Source) mentions(m mention) bool {
	missing := slices.ContainsFunc(m.words, func(w mentioned) bool {
		return !s.words[w.folded] && !s.words[w.stem] && !(w.short && strings.Contains(s.initials, w.folded))
	})
	return !missing || len(m.words) > 1 && s.words[m.initials]
}

// short reports an acronym.
func short(name string) bool {
	return len(name) >= 2 && len(name) <= 6 && strings.ToUpper(name) == name && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
