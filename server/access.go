package server

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/client"
	"sluice/filter"
)

// Bounds on an access row.
const (
	maxReaders    = 10_000
	maxAttributes = 64
	maxRegions    = 256
	maxWord       = 1024 // bytes of a reader, an attribute's name or value, a region
)

func accessOf(d client.Document) (filter.Access, error) {
	readers, err := readersOf(d.Readers)
	if err != nil {
		return filter.Access{}, err
	}
	attributes, err := attributesOf(d.Attributes)
	if err != nil {
		return filter.Access{}, err
	}
	a := filter.Access{Readers: readers, Attributes: attributes}
	a.Applicability = filter.Applicability{Regions: d.Regions, ValidFrom: timeOf(d.ValidFrom), ValidUntil: timeOf(d.ValidUntil)}
	return a, checkApplicability(a.Applicability)
}

func readersOf(list *[]string) (filter.Readers, error) {
	if list == nil {
		return filter.Readers{Undeclared: true}, nil
	}
	if len(*list) > maxReaders {
		return filter.Readers{}, badRequest("readers: more than %d; use groups", maxReaders)
	}
	readers := filter.Readers{List: make([]filter.Reader, len(*list))}
	for i, text := range *list {
		if !isReader(text) {
			return filter.Readers{}, badRequest("readers: entry %d is none of user:SUBJECT, group:NAME and public", i)
		}
		readers.List[i] = filter.Reader(text)
	}
	return readers, nil
}

func isReader(text string) bool {
	if filter.Reader(text) == filter.Public {
		return true
	}
	kind, name, ok := strings.Cut(text, ":")
	return ok && (kind == "user" || kind == "group") && isWord(name)
}

// isWord holds for the names that an identity can carry, too.
func isWord(text string) bool { return text != "" && len(text) <= maxWord && plain(text) }

func attributesOf(values map[string]any) (filter.Attributes, error) {
	if len(values) > maxAttributes {
		return nil, badRequest("attributes: more than %d", maxAttributes)
	}
	attributes := filter.Attributes{}
	for name, value := range values {
		if !isWord(name) {
			return nil, badRequest("attributes: a name is empty, too long or not plain text")
		}
		v, ok := attributeOf(value)
		if !ok {
			return nil, badRequest("attributes: %q is not a string, boolean, whole number or list of strings", name)
		}
		if v != nil {
			attributes[name] = v
		}
	}
	return attributes, nil
}

// attributeOf converts a decoded JSON value; null is the absence of its key.
func attributeOf(value any) (converted any, ok bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case bool:
		return v, true
	case string:
		return v, len(v) <= maxWord
	case number:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, err == nil
	case []any:
		return stringSet(v)
	default:
		return nil, false
	}
}

func stringSet(list []any) (any, bool) {
	set := make([]string, 0, len(list))
	for _, item := range list {
		s, ok := item.(string)
		if !ok || len(s) > maxWord {
			return nil, false
		}
		set = append(set, s)
	}
	slices.Sort(set)
	return slices.Compact(set), len(list) <= maxReaders
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func checkApplicability(a filter.Applicability) error {
	if len(a.Regions) > maxRegions {
		return badRequest("regions: more than %d", maxRegions)
	}
	for _, r := range a.Regions {
		if !isWord(r) {
			return badRequest("regions: one is empty, too long or not plain text")
		}
	}
	if !a.ValidFrom.IsZero() && !a.ValidUntil.IsZero() && !a.ValidFrom.Before(a.ValidUntil) {
		return badRequest("valid_until: not after valid_from")
	}
	return nil
}

// patchOf checks a patch, and returns the change of an access row that it asks for.
func patchOf(p client.AccessPatch) (func(filter.Access) (filter.Access, error), error) {
	var d client.Document
	fields := []struct {
		name string
		raw  json.RawMessage
		into any
	}{
		{"readers", p.Readers, &d.Readers},
		{"attributes", p.Attributes, &d.Attributes},
		{"regions", p.Regions, &d.Regions},
		{"valid_from", p.ValidFrom, &d.ValidFrom},
		{"valid_until", p.ValidUntil, &d.ValidUntil},
	}
	for _, f := range fields {
		if f.raw == nil {
			continue
		}
		if err := decode(f.raw, f.into); err != nil {
			return nil, badRequest("%s: %s", f.name, failureOf(err).detail)
		}
	}
	a, err := accessOf(d)
	if err != nil {
		return nil, err
	}
	return func(row filter.Access) (filter.Access, error) { return patched(row, p, a) }, nil
}

// patched takes from a the fields that the patch names.
func patched(row filter.Access, p client.AccessPatch, a filter.Access) (filter.Access, error) {
	if p.Readers != nil {
		row.Readers = a.Readers
	}
	if p.Attributes != nil {
		row.Attributes = a.Attributes
	}
	if p.Regions != nil {
		row.Applicability.Regions = a.Applicability.Regions
	}
	if p.ValidFrom != nil {
		row.Applicability.ValidFrom = a.Applicability.ValidFrom
	}
	if p.ValidUntil != nil {
		row.Applicability.ValidUntil = a.Applicability.ValidUntil
	}
	return row, checkApplicability(row.Applicability)
}
