package filter

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// Access is a document's access row: all that decides who may read it, and
// where and when it applies.
type Access struct {
	Readers       Readers
	Attributes    Attributes
	Applicability Applicability
}

// AccessFields names fields of an access row.
type AccessFields uint8

// The fields that a write may leave open.
const (
	ReadersField AccessFields = 1 << iota
	AttributesField
	RegionsField
	ValidFromField
	ValidUntilField
)

// Keeping returns a with the named fields as they are in the present row.
func (a Access) Keeping(fields AccessFields, present Access) Access {
	if fields&ReadersField != 0 {
		a.Readers = present.Readers
	}
	if fields&AttributesField != 0 {
		a.Attributes = present.Attributes
	}
	if fields&RegionsField != 0 {
		a.Applicability.Regions = present.Applicability.Regions
	}
	if fields&ValidFromField != 0 {
		a.Applicability.ValidFrom = present.Applicability.ValidFrom
	}
	if fields&ValidUntilField != 0 {
		a.Applicability.ValidUntil = present.Applicability.ValidUntil
	}
	return a
}

// Applicability says where and when a document applies. It is not access: a
// readable document out of scope is left out of a search, and counted apart.
// No Regions means everywhere; a zero time is open on that side.
// The validity is [ValidFrom, ValidUntil).
type Applicability struct {
	Regions    []string
	ValidFrom  time.Time
	ValidUntil time.Time
}

// Scope is what a search asks of applicability: one region (none: only
// documents that apply everywhere) at one time, unless it asks for any.
type Scope struct {
	Region    string
	AnyRegion bool
	AsOf      time.Time
	AnyTime   bool
}

// Class is a digest of what decides who may read the document, and where it
// applies. Documents of one class are admitted together, their dates aside.
func (a Access) Class() uint64 {
	digest := a.Attributes.AppendCanonical(nil)
	readers, regions := slices.Sorted(slices.Values(a.Readers.List)), slices.Sorted(slices.Values(a.Applicability.Regions))
	digest = binary.AppendUvarint(digest, uint64(len(readers)))
	for _, reader := range readers {
		digest = appendText(digest, string(reader))
	}
	for _, region := range regions {
		digest = appendText(digest, region)
	}
	if a.Readers.Undeclared {
		digest = append(digest, 'u')
	}
	sum := sha256.Sum256(digest)
	return binary.LittleEndian.Uint64(sum[:])
}
