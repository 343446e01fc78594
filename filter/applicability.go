package filter

import (
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// Applies reports whether a document applies within the scope: in its region,
// and at its time, the validity being [ValidFrom, ValidUntil).
func Applies(a Applicability, s Scope) bool {
	return a.appliesIn(s) && (s.AnyTime || a.validAt(s.AsOf))
}

func (a Applicability) appliesIn(s Scope) bool {
	if s.AnyRegion || len(a.Regions) == 0 {
		return true
	}
	return s.Region != "" && slices.Contains(a.Regions, s.Region)
}

func (a Applicability) validAt(t time.Time) bool {
	return (a.ValidFrom.IsZero() || !t.Before(a.ValidFrom)) &&
		(a.ValidUntil.IsZero() || t.Before(a.ValidUntil))
}

// Never reports a validity that holds no moment: it ends before it begins.
func (a Applicability) Never() bool {
	return !a.ValidFrom.IsZero() && !a.ValidUntil.IsZero() && !a.ValidFrom.Before(a.ValidUntil)
}

func (a Applicability) dated() bool { return !a.ValidFrom.IsZero() || !a.ValidUntil.IsZero() }

// Within returns the documents of the set that apply within the scope. If all
// do it is s itself, by which an index knows that it has met the Set before.
func (v *View) Within(s Set, scope Scope) Set {
	within := s.And(Set{v.present})
	if !scope.AnyRegion {
		within = within.And(v.inRegion(scope.Region))
	}
	if !scope.AnyTime {
		within = within.AndNot(Set{v.invalidAt(scope.AsOf)})
	}
	if within.Len() == s.Len() {
		return s
	}
	return within
}

func (v *View) inRegion(region string) Set {
	documents, ok := v.regions.get(region)
	if region == "" || !ok {
		return Set{v.everywhere}
	}
	return Set{roaring.Or(v.everywhere, documents)}
}

// validity is which dated documents are not valid at any time in [from, until):
// no bound of validity lies inside. Zero times are open.
type validity struct {
	from, until time.Time
	invalid     *roaring.Bitmap
}

func (v *validity) covers(t time.Time) bool {
	return Applicability{ValidFrom: v.from, ValidUntil: v.until}.validAt(t)
}

// invalidAt returns the documents that are not valid at t. As most searches
// ask for the present, the answer is kept until a bound of validity has passed.
func (v *View) invalidAt(t time.Time) *roaring.Bitmap {
	if known := v.valid.Load(); known != nil && known.covers(t) {
		return known.invalid
	}
	known := &validity{invalid: roaring.New()}
	for ordinal := range (Set{v.dated}).Each {
		a := v.rows.get(ordinal).applicability
		if !a.validAt(t) {
			known.invalid.Add(ordinal)
		}
		known.narrow(a.ValidFrom, t)
		known.narrow(a.ValidUntil, t)
	}
	v.valid.Store(known)
	return known.invalid
}

// narrow lets [from, until), which holds t, end at the bound.
func (v *validity) narrow(bound, t time.Time) {
	switch {
	case bound.IsZero():
	case bound.After(t):
		if v.until.IsZero() || bound.Before(v.until) {
			v.until = bound
		}
	case v.from.IsZero() || bound.After(v.from):
		v.from = bound
	}
}
