package milvus

import (
	"maps"

	"github.com/RoaringBitmap/roaring/v2"
)

// classes says under which class the server has the rows of each document. It
// is never changed. A document of rows under several classes is in none.
type classes struct {
	members map[int64]*roaring.Bitmap // ordinals
	all     *roaring.Bitmap
}

func noClasses() classes { return classes{map[int64]*roaring.Bitmap{}, roaring.New()} }

// classesEdit makes other classes of some. What they share stays untouched.
type classesEdit struct {
	classes
	own map[int64]bool // bitmaps that may be written to
}

func (c classes) edit() *classesEdit {
	return &classesEdit{classes{maps.Clone(c.members), c.all.Clone()}, map[int64]bool{}}
}

func (e *classesEdit) put(ordinal uint32, class int64) {
	e.all.Add(ordinal)
	e.member(class).Add(ordinal)
}

// remove forgets a document that was put with that class.
func (e *classesEdit) remove(ordinal uint32, class int64) {
	e.all.Remove(ordinal)
	if e.members[class] == nil {
		return
	}
	if e.member(class).Remove(ordinal); e.members[class].IsEmpty() {
		delete(e.members, class)
	}
}

func (e *classesEdit) member(class int64) *roaring.Bitmap {
	if !e.own[class] {
		bitmap := e.members[class]
		if bitmap == nil {
			bitmap = roaring.New()
		}
		e.members[class], e.own[class] = bitmap.Clone(), true
	}
	return e.members[class]
}
