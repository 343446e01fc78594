// Package filter decides who may read what: reader lists and Cedar policies
// become immutable roaring bitmaps of document ordinals.
//
// It reads no storage. A View is fed the access rows of one collection and
// answers, for a principal, the Set of ordinals that principal may read.
package filter

import "github.com/RoaringBitmap/roaring/v2"

// Set is an immutable set of document ordinals. Its zero value admits nothing:
// there is no value of Set that means "no filter".
type Set struct{ bitmap *roaring.Bitmap }

// SetOf returns the Set of the given ordinals.
func SetOf(ordinals ...uint32) Set { return Set{roaring.BitmapOf(ordinals...)} }

// Contains reports whether the ordinal is admitted.
func (s Set) Contains(ordinal uint32) bool {
	return s.bitmap != nil && s.bitmap.Contains(ordinal)
}

// Len returns the number of admitted ordinals.
func (s Set) Len() int {
	if s.bitmap == nil {
		return 0
	}
	return int(s.bitmap.GetCardinality())
}

// And returns the ordinals that both sets admit.
func (s Set) And(other Set) Set {
	if s.bitmap == nil || other.bitmap == nil {
		return Set{}
	}
	return Set{roaring.And(s.bitmap, other.bitmap)}
}

// AndNot returns the ordinals that s admits and other does not.
func (s Set) AndNot(other Set) Set {
	if s.bitmap == nil || other.bitmap == nil {
		return s
	}
	return Set{roaring.AndNot(s.bitmap, other.bitmap)}
}

// Each calls yield with every ordinal in ascending order until it returns false.
// It is a range function: for ordinal := range set.Each { … }.
func (s Set) Each(yield func(uint32) bool) {
	if s.bitmap != nil {
		s.bitmap.Iterate(yield)
	}
}

// From returns a range function over the admitted ordinals from the given one
// on, ascending.
func (s Set) From(ordinal uint32) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		if s.bitmap == nil {
			return
		}
		it := s.bitmap.Iterator()
		for it.AdvanceIfNeeded(ordinal); it.HasNext(); {
			if !yield(it.Next()) {
				return
			}
		}
	}
}

// isNone reports the zero value, which no View makes.
func (s Set) isNone() bool { return s.bitmap == nil }

// IsEmpty reports whether no ordinal is admitted.
func (s Set) IsEmpty() bool { return s.bitmap == nil || s.bitmap.IsEmpty() }

// Equal reports whether both sets admit the same ordinals.
func (s Set) Equal(other Set) bool {
	if s.bitmap == nil || other.bitmap == nil {
		return s.IsEmpty() && other.IsEmpty()
	}
	return s.bitmap.Equals(other.bitmap)
}

// Bitmap returns a copy that the caller may change.
func (s Set) Bitmap() *roaring.Bitmap {
	if s.bitmap == nil {
		return roaring.New()
	}
	return s.bitmap.Clone()
}

// Many returns an iterator that fills a buffer with ordinals in ascending
// order: the fastest way through a large set.
func (s Set) Many() roaring.ManyIntIterable {
	if s.bitmap == nil {
		return roaring.New().ManyIterator()
	}
	return s.bitmap.ManyIterator()
}

// IntersectionLen returns how many ordinals of the bitmap are admitted.
func (s Set) IntersectionLen(bitmap *roaring.Bitmap) int {
	if s.bitmap == nil {
		return 0
	}
	return int(s.bitmap.AndCardinality(bitmap))
}
