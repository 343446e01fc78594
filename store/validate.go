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
	if len(v.Key) > MaxKeyBytes {
		return fmt.Errorf("%w: the key has %d bytes, at most %d are possible", ErrInvalid, len(v.Key), MaxKeyBytes)
	}
	size := len(v.Text) + len(v.Parsed) + len(v.Title) + len(v.Format)
	for _, b := range append([]Build{v.Build()}, v.Builds...) {
		if err := b.Validate(len(v.Text)); err != nil {
			return err
		}
		size += b.size()
	}
	if size > MaxVersionBytes {
		return fmt.Errorf("%w: the version has %d bytes, at most %d are possible", ErrInvalid, size, MaxVersionBytes)
	}
	return nil
}

// Build is the part of the version that is its own generation's.
func (v *Version) Build() Build {
	return Build{v.Generation, v.Chunker, v.Model, v.Chunks, v.Dimensions, v.Vectors, v.Codes}
}

// Validate reports, as ErrInvalid, a build that no store can hold, of a text of
// so many bytes.
func (b *Build) Validate(text int) error {
	switch {
	case b.Dimensions < 0 || len(b.Vectors) != len(b.Chunks)*b.Dimensions:
		return fmt.Errorf("%w: %d vector components for %d chunks × %d dimensions", ErrInvalid, len(b.Vectors), len(b.Chunks), b.Dimensions)
	case b.Codes != nil && len(b.Codes) != len(b.Chunks):
		return fmt.Errorf("%w: token codes of %d chunks for %d chunks", ErrInvalid, len(b.Codes), len(b.Chunks))
	}
	for i, c := range b.Chunks {
		if c.Start < 0 || c.End < c.Start || c.End > text {
			return fmt.Errorf("%w: chunk %d is [%d, %d) of a text of %d bytes", ErrInvalid, i, c.Start, c.End, text)
		}
	}
	return nil
}

func (b *Build) size() int {
	n := 4*len(b.Vectors) + len(b.Chunker) + len(b.Model)
	for _, codes := range b.Codes {
		n += len(codes)
	}
	for _, c := range b.Chunks {
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
