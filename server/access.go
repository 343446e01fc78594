package server

import (
	"encoding/json"
	"errors"
	"time"

	"sluice/client"
	"sluice/filter"
)

// Bounds on applicability.
const (
	maxRegions = 256
	maxRegion  = 1024 // bytes of a region's name
)

// accessOf reads the fields that a body names; those that it does not are kept.
func accessOf(p client.AccessPatch) (a filter.Access, keeps filter.AccessFields, err error) {
	var d client.Document
	fields := []struct {
		name  string
		raw   json.RawMessage
		into  any
		field filter.AccessFields
	}{
		{"readers", p.Readers, &d.Readers, filter.ReadersField},
		{"attributes", p.Attributes, &d.Attributes, filter.AttributesField},
		{"regions", p.Regions, &d.Regions, filter.RegionsField},
		{"valid_from", p.ValidFrom, &d.ValidFrom, filter.ValidFromField},
		{"valid_until", p.ValidUntil, &d.ValidUntil, filter.ValidUntilField},
	}
	for _, f := range fields {
		if f.raw == nil {
			keeps |= f.field
		} else if err := decode(f.raw, f.into); err != nil {
			return a, keeps, badRequest("%s: %s", f.name, failureOf(err).detail)
		}
	}
	a, err = rowOf(d)
	return a, keeps, err
}

func rowOf(d client.Document) (filter.Access, error) {
	readers, err := readersOf(d.Readers)
	if err != nil {
		return filter.Access{}, err
	}
	attributes, err := attributesOf(d.Attributes)
	if err != nil {
		return filter.Access{}, err
	}
	if err := errors.Join(checkTime("valid_from", d.ValidFrom), checkTime("valid_until", d.ValidUntil)); err != nil {
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
	readers, err := filter.ParseReaders(*list)
	if err != nil {
		return filter.Readers{}, badRequest("readers: %v", err)
	}
	return readers, nil
}

func attributesOf(values map[string]any) (filter.Attributes, error) {
	attributes, err := filter.ParseAttributes(values)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	return attributes, nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// checkTime refuses the one time that would be taken for none: an open bound.
func checkTime(name string, t *time.Time) error {
	if t != nil && t.IsZero() {
		return badRequest("%s: the first moment of the year 1 is not a time here; leave it out, or name another", name)
	}
	return nil
}

func checkApplicability(a filter.Applicability) error {
	if len(a.Regions) > maxRegions {
		return badRequest("regions: more than %d", maxRegions)
	}
	for _, r := range a.Regions {
		if r == "" || len(r) > maxRegion || !plain(r) {
			return badRequest("regions: one is empty, longer than %d bytes, or not plain text", maxRegion)
		}
	}
	if a.Never() {
		return badRequest("valid_until: not after valid_from")
	}
	return nil
}

// patchOf checks a patch, and returns the change of an access row that it asks for.
func patchOf(p client.AccessPatch) (func(filter.Access) (filter.Access, error), error) {
	a, keeps, err := accessOf(p)
	if err != nil {
		return nil, err
	}
	return func(row filter.Access) (filter.Access, error) {
		row = a.Keeping(keeps, row)
		return row, checkApplicability(row.Applicability)
	}, nil
}
