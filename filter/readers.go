package filter

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on a document's reader list.
const (
	maxReaders     = 10_000
	maxReaderBytes = 512
)

// Reader names one reader of a document: "user:<subject>", "group:<name>" or "public".
type Reader string

// Public admits every principal of the tenant (policies still apply).
const Public Reader = "public"

// User returns the Reader for one subject.
func User(subject string) Reader { return Reader("user:" + subject) }

// Group returns the Reader for one group.
func Group(name string) Reader { return Reader("group:" + name) }

// Readers lists who may read a document. The zero value admits nobody; a
// document that declares no readers at all has Undeclared set and is left to
// the policies.
type Readers struct {
	Undeclared bool
	List       []Reader
}

// ParseReaders checks a declared reader list and returns it sorted and without
// duplicates. Names are compared byte by byte: no case folding, no
// normalisation, no prefixes. No list at all is an empty list: whoever knows
// that nothing was declared sets Undeclared.
func ParseReaders(list []string) (Readers, error) {
	if len(list) > maxReaders {
		return Readers{}, fmt.Errorf("%d readers: at most %d are allowed; use groups", len(list), maxReaders)
	}
	readers := make([]Reader, 0, len(list))
	for i, text := range list {
		if err := checkReader(text); err != nil {
			return Readers{}, fmt.Errorf("entry %d: %w", i+1, err)
		}
		readers = append(readers, Reader(text))
	}
	slices.Sort(readers)
	return Readers{List: slices.Compact(readers)}, nil
}

func checkReader(text string) error {
	if len(text) > maxReaderBytes {
		return fmt.Errorf("%d bytes long: at most %d are allowed", len(text), maxReaderBytes)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%q is not UTF-8", text)
	}
	if text == string(Public) {
		return nil
	}
	kind, name, _ := strings.Cut(text, ":")
	if (kind != "user" && kind != "group") || name == "" {
		return fmt.Errorf(`%q must be "user:<subject>", "group:<name>" or "public"`, text)
	}
	return nil
}

// open reports whether the document is left to the policies. A row that says
// both "undeclared" and names readers is taken at its stricter word.
func (r Readers) open() bool { return r.Undeclared && len(r.List) == 0 }
