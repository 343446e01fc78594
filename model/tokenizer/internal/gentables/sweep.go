package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unicode"
)

// sweep is the part of the file that decides the tables. A run is
// [first, last, class].
type sweep struct {
	Uncased        behaviour `json:"bert_uncased"`
	Cased          behaviour `json:"bert_cased"`
	Whitespace     behaviour `json:"whitespace_split"`
	Regex          behaviour `json:"bytelevel_regex"`
	NFC, NFD, NFKD mappings
	Lowercase      mappings
}

type behaviour struct{ Classes []run }

type run struct {
	first, last rune
	class       string
}

func (r *run) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.first, &r.last, &r.class})
}

type mappings struct{ Map map[string]string }

func readSweep(path string) (*sweep, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var s sweep
	if err := json.NewDecoder(unzipped).Decode(&s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &s, nil
}

// set holds one flag a code point.
type set []bool

func newSet() set { return make(set, unicode.MaxRune+1) }

// of is the set of the code points of a class.
func (b behaviour) of(class string) set {
	s := newSet()
	for _, r := range b.Classes {
		if r.class == class {
			s.add(r.first, r.last)
		}
	}
	return s
}

func (s set) add(first, last rune) {
	for r := first; r <= last; r++ {
		s[r] = true
	}
}

// without is s less the code points of t.
func (s set) without(t set) set {
	out := slices.Clone(s)
	for r, in := range t {
		out[r] = out[r] && !in
	}
	return out
}

// ranges lists s as first, last, first, last, …
func (s set) ranges() []rune {
	var out []rune
	for r, in := range s {
		if !in {
			continue
		}
		if n := len(out); n > 0 && out[n-1] == rune(r)-1 {
			out[n-1] = rune(r)
		} else {
			out = append(out, rune(r), rune(r))
		}
	}
	return out
}

// mapping says what a code point becomes.
type mapping struct {
	from rune
	to   string
}

// without is m less what n says, too.
func (m mappings) without(n mappings) mappings {
	out := mappings{map[string]string{}}
	for from, to := range m.Map {
		if n.Map[from] != to {
			out.Map[from] = to
		}
	}
	return out
}

func (m mappings) sorted() ([]mapping, error) {
	var out []mapping
	for hex, to := range m.Map {
		from, err := strconv.ParseUint(hex, 16, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, mapping{rune(from), to})
	}
	slices.SortFunc(out, func(a, b mapping) int { return int(a.from - b.from) })
	return out, nil
}
