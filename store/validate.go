package store

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice/filter"
)

// Validate reports, as ErrInvalid, a version that no store can hold.
func (v *Version) Validate() error {
	switch {
	case len(v.Key) > MaxKeyBytes:
		return fmt.Errorf("%w: the key has %d bytes, at most %d are possible", ErrInvalid, len(v.Key), MaxKeyBytes)
	case v.Dimensions < 0 || len(v.Vectors) != len(v.Chunks)*v.Dimensions:
		return fmt.Errorf("%w: %d vector components for %d chunks × %d dimensions", ErrInvalid, len(v.Vectors), len(v.Chunks), v.Dimensions)
	case v.Codes != nil && len(v.Codes) != len(v.Chunks):
		return fmt.Errorf("%w: token codes of %d chunks for %d chunks", ErrInvalid, len(v.Codes), len(v.Chunks))
	case v.size() > MaxVersionBytes:
		return fmt.Errorf("%w: the version has %d bytes, at most %d are possible", ErrInvalid, v.size(), MaxVersionBytes)
	}
	for i, c := range v.Chunks {
		if c.Start < 0 || c.End < c.Start || c.End > len(v.Text) {
			return fmt.Errorf("%w: chunk %d is [%d, %d) of a text of %d bytes", ErrInvalid, i, c.Start, c.End, len(v.Text))
		}
	}
	return nil
}

func (v *Version) size() int {
	n := len(v.Text) + 4*len(v.Vectors) + len(v.Title) + len(v.Format) + len(v.Chunker) + len(v.Model)
	for _, codes := range v.Codes {
		n += len(codes)
	}
	for _, c := range v.Chunks {
		n += len(c.Index)
		for _, h := range c.Headings {
			n += len(h)
		}
	}
	return n
}

// NormalAccess returns the form in which a store keeps an access row, so that
// equal rows compare equal: sets (readers, regions, []string attributes) sorted
// without duplicates, empty ones nil, times in UTC to the microsecond. It shares
// nothing with a. An attribute of another type than filter.Attributes allows is ErrInvalid.
func NormalAccess(a filter.Access) (filter.Access, error) {
	attributes, err := normalAttributes(a.Attributes)
	return filter.Access{
		Readers:    filter.Readers{Undeclared: a.Readers.Undeclared, List: normalSet(a.Readers.List)},
		Attributes: attributes,
		Applicability: filter.Applicability{
			Regions:    normalSet(a.Applicability.Regions),
			ValidFrom:  NormalTime(a.Applicability.ValidFrom),
			ValidUntil: NormalTime(a.Applicability.ValidUntil),
		},
	}, err
}

// NormalTime returns t as a store keeps it: in UTC, to the microsecond.
func NormalTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func normalSet[S ~string](set []S) []S {
	if len(set) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(set)))
}

func normalAttributes(attributes filter.Attributes) (filter.Attributes, error) {
	if len(attributes) == 0 {
		return nil, nil
	}
	normal := maps.Clone(attributes)
	for name, value := range normal {
		switch value := value.(type) {
		case string, bool, int64:
		case []string:
			normal[name] = normalSet(value)
		default:
			return nil, fmt.Errorf("%w: attribute %q is a %T; string, bool, int64 and []string are possible", ErrInvalid, name, value)
		}
	}
	return normal, nil
}
