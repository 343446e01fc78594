package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// oracle does step by step, on slices of characters and with maps, what a
// Tokenizer with a BertNormalizer of all options does at once. Special tokens
// in the text are text.
type oracle struct {
	vocab     map[string]int32
	unknown   string
	maxLength int
	lower     bool
}

type character struct {
	r     rune
	at    Span
	class uint8
	added bool // not the first of a decomposition
}

func newOracle(data []byte) (*oracle, error) {
	var f struct {
		Normalizer struct{ Lowercase bool }
		Model      struct {
			Vocab   map[string]int32
			Unknown string `json:"unk_token"`
			Max     int    `json:"max_input_chars_per_word"`
		}
	}
	err := json.Unmarshal(data, &f)
	return &oracle{f.Model.Vocab, f.Model.Unknown, f.Model.Max, f.Normalizer.Lowercase}, err
}

func (o *oracle) encode(text string) Encoding {
	var e Encoding
	for i, word := range o.words(o.normalize(text)) {
		o.addPieces(&e, word, int32(i))
	}
	return e
}

func (o *oracle) normalize(text string) []character {
	var all []character
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		all = append(all, character{r: r, at: Span{i, i + size}})
		i += size
	}
	all = slices.DeleteFunc(all, func(c character) bool { return within(controls, c.r) })
	all = each(all, func(c character) []rune {
		switch {
		case within(spaces, c.r):
			return []rune{' '}
		case within(ideographs, c.r):
			return []rune{' ', c.r, ' '}
		}
		return []rune{c.r}
	})
	if o.lower {
		all = stripAccents(all)
		all = each(all, func(c character) []rune { return mapped(lowercases, c.r) })
	}
	return all
}

// each replaces every character by several at the same place.
func each(all []character, f func(character) []rune) []character {
	var out []character
	for _, c := range all {
		for i, r := range f(c) {
			out = append(out, character{r: r, at: c.at, added: i > 0})
		}
	}
	return out
}

func stripAccents(all []character) []character {
	places := make([]Span, len(all))
	for i, c := range all {
		places[i] = c.at
	}
	all = each(all, func(c character) []rune {
		if c.r >= syllableFirst && c.r <= syllableLast {
			return appendDecomposition(nil, c.r)
		}
		return mapped(decompositions, c.r)
	})
	for i := range all {
		for _, run := range combiningClasses {
			if run.first <= all[i].r && all[i].r <= run.last {
				all[i].class = run.class
			}
		}
	}
	for swapped := true; swapped; {
		swapped = false
		for i := 1; i < len(all); i++ {
			if all[i].class > 0 && all[i-1].class > all[i].class {
				all[i-1], all[i], swapped = all[i], all[i-1], true
			}
		}
	}
	n := -1
	for i := range all {
		if !all[i].added {
			n++
		}
		all[i].at = places[n]
	}
	return slices.DeleteFunc(all, func(c character) bool { return within(marks, c.r) })
}

func (o *oracle) words(all []character) [][]character {
	words := [][]character{nil}
	for _, c := range all {
		last := len(words) - 1
		switch {
		case within(spaces, c.r):
			words = append(words, nil)
		case within(punctuation, c.r):
			words = append(words, []character{c}, nil)
		default:
			words[last] = append(words[last], c)
		}
	}
	return slices.DeleteFunc(words, func(w []character) bool { return len(w) == 0 })
}

func (o *oracle) addPieces(e *Encoding, word []character, number int32) {
	before := *e
	for rest := word; len(rest) > 0; {
		n := len(rest)
		for ; n > 0; n-- {
			if id, ok := o.vocab[o.piece(rest[:n], len(rest) < len(word))]; ok {
				o.add(e, id, rest[:n], number)
				break
			}
		}
		if n == 0 || len(word) > o.maxLength {
			*e = before
			o.add(e, o.vocab[o.unknown], word, number)
			return
		}
		rest = rest[n:]
	}
}

func (o *oracle) piece(part []character, inside bool) string {
	var s strings.Builder
	if inside {
		s.WriteString("##")
	}
	for _, c := range part {
		s.WriteRune(c.r)
	}
	return s.String()
}

func (o *oracle) add(e *Encoding, id int32, part []character, number int32) {
	e.IDs = append(e.IDs, id)
	e.TypeIDs = append(e.TypeIDs, 0)
	e.Offsets = append(e.Offsets, Span{part[0].at.Start, part[len(part)-1].at.End})
	e.Words = append(e.Words, number)
	e.Special = append(e.Special, false)
}

func within(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

func mapped(table []mapping, r rune) []rune {
	for _, m := range table {
		if m.from == r {
			return []rune(m.to)
		}
	}
	return []rune{r}
}
