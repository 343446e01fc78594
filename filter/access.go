package filter

import "time"

// Access is a document's access row: all that decides who may read it, and
// where and when it applies.
type Access struct {
	Readers       Readers
	Attributes    Attributes
	Applicability Applicability
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
