package filter

import (
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
)

// Change is the present state of one document: its access row, or its absence.
type Change struct {
	Ordinal uint32
	Deleted bool
	Access  Access
}

// renumberSlack is how many ids of vanished classes, or readers, are borne,
// beyond as many as there are, before the next View numbers them anew.
const renumberSlack = 1 << 16

// Apply returns the View after the changes, in order. Applying a change twice
// is harmless. It copies only what the changes touch.
func (v *View) Apply(changes []Change) *View {
	if len(changes) == 0 {
		return v
	}
	e := v.edit()
	touched := make([]uint32, len(changes))
	for i, change := range changes {
		touched[i] = change.Ordinal
		e.remove(change.Ordinal)
		if !change.Deleted {
			e.insert(change.Ordinal, change.Access)
		}
	}
	return e.view(touched)
}

// viewEdit is a View under construction. Bitmaps in fresh belong to it and may
// be written to; all others are shared with older Views.
type viewEdit struct {
	next    *View
	rows    *tableEdit[*row]
	names   *tableEdit[Reader]
	readers *shardsEdit[Reader, posting]
	classes *shardsEdit[classKey, classDocuments]
	regions *shardsEdit[string, *roaring.Bitmap]
	fresh   map[*roaring.Bitmap]bool
}

func (v *View) edit() *viewEdit {
	return &viewEdit{
		next:    v.share(),
		rows:    v.rows.edit(),
		names:   v.names.edit(),
		readers: v.readers.edit(),
		classes: v.classes.edit(),
		regions: v.regions.edit(),
		fresh:   map[*roaring.Bitmap]bool{},
	}
}

func (e *viewEdit) view(touched []uint32) *View {
	if int(e.next.lastReader) > 2*e.readers.size+renumberSlack {
		e.renumberReaders()
	}
	e.next.rows = e.rows.table
	e.next.names = e.names.table
	e.next.readers = e.readers.shards
	e.next.regions = e.regions.shards
	if int(e.next.ledger.nextClass.Load()) > 2*e.classes.size+renumberSlack {
		e.renumber()
	}
	e.next.classes = e.classes.shards
	e.next.state = e.next.ledger.nextState.Add(1)
	e.next.history = e.next.history.then(delta{e.next.state, touched})
	return e.next
}

// renumber starts a new ledger, so that ids neither run out nor leave the
// bitmaps of decisions mostly about classes that are gone.
func (e *viewEdit) renumber() {
	ledger := newLedger()
	for key, c := range e.classes.all() {
		renamed := *c.class
		renamed.id = ledger.nextClass.Add(1)
		e.classes.set(key, classDocuments{&renamed, c.documents})
	}
	e.next.ledger = ledger
	e.next.history = history{} // it speaks of the states of the old ledger
}

// renumberReaders numbers the readers that there are from one on, so that the
// table of their names is not mostly of those that are gone.
func (e *viewEdit) renumberReaders() {
	e.names, e.next.lastReader = table[Reader](nil).edit(), 0
	renamed := make(map[uint32]uint32, e.readers.size)
	for name, p := range e.readers.all() {
		before := p.id
		p.id = e.nameReader(name)
		renamed[before] = p.id
		e.readers.set(name, p)
	}
	for ordinal := range roaring.Values(e.next.present) {
		r := *e.rows.get(ordinal)
		r.readers = slices.Clone(r.readers)
		for i, id := range r.readers {
			r.readers[i] = renamed[id]
		}
		e.rows.replace(ordinal, &r)
	}
}

// nameReader gives a reader an id.
func (e *viewEdit) nameReader(name Reader) uint32 {
	e.next.lastReader++
	e.names.insert(e.next.lastReader, name)
	return e.next.lastReader
}

// own returns a bitmap that may be written to, in place of the given one.
func (e *viewEdit) own(bitmap *roaring.Bitmap) *roaring.Bitmap {
	if e.fresh[bitmap] {
		return bitmap
	}
	owned := roaring.New()
	if bitmap != nil {
		owned = bitmap.Clone()
	}
	e.fresh[owned] = true
	return owned
}

func (e *viewEdit) add(bitmap **roaring.Bitmap, ordinal uint32) {
	*bitmap = e.own(*bitmap)
	(*bitmap).Add(ordinal)
}

func (e *viewEdit) drop(bitmap **roaring.Bitmap, ordinal uint32) {
	if (*bitmap).Contains(ordinal) {
		*bitmap = e.own(*bitmap)
		(*bitmap).Remove(ordinal)
	}
}

func (e *viewEdit) insert(ordinal uint32, a Access) {
	r := &row{class: classKeyOf(a.Attributes), readers: e.insertReaders(ordinal, a.Readers), applicability: a.Applicability}
	r.applicability.Regions = slices.Clone(a.Applicability.Regions)
	e.rows.insert(ordinal, r)
	e.add(&e.next.present, ordinal)
	e.insertClass(ordinal, r.class, a.Attributes)
	e.insertApplicability(ordinal, r.applicability)
}

func (e *viewEdit) insertClass(ordinal uint32, key classKey, a Attributes) {
	c, ok := e.classes.get(key)
	if !ok {
		record, err := documentRecord(e.next.tenant, a)
		c.class = &class{id: e.next.ledger.nextClass.Add(1), document: documentEntity(record), broken: err}
	}
	e.add(&c.documents, ordinal)
	e.classes.set(key, c)
}

// insertReaders returns the ids of the postings that the document is in.
func (e *viewEdit) insertReaders(ordinal uint32, r Readers) []uint32 {
	if r.open() {
		e.add(&e.next.undeclared, ordinal)
	}
	ids := make([]uint32, 0, len(r.List))
	for _, name := range r.List {
		p, known := e.readers.get(name)
		if !known {
			name = Reader(strings.Clone(string(name))) // the list may be part of something large
			p.id = e.nameReader(name)
		}
		e.add(&p.documents, ordinal)
		e.readers.set(name, p)
		ids = append(ids, p.id)
	}
	return ids
}

func (e *viewEdit) removeReader(id, ordinal uint32) {
	name := e.names.get(id)
	p, ok := e.readers.get(name)
	if !ok {
		return // the row named the reader twice
	}
	e.drop(&p.documents, ordinal)
	if p.documents.IsEmpty() {
		e.readers.delete(name)
		e.names.remove(id)
		return
	}
	e.readers.set(name, p)
}

func (e *viewEdit) insertApplicability(ordinal uint32, a Applicability) {
	if len(a.Regions) == 0 {
		e.add(&e.next.everywhere, ordinal)
	}
	for _, region := range a.Regions {
		e.insertRegion(region, ordinal)
	}
	if a.dated() {
		e.add(&e.next.dated, ordinal)
	}
}

// remove takes a document out of wherever its row says it is.
func (e *viewEdit) remove(ordinal uint32) {
	r := e.rows.get(ordinal)
	if r == nil {
		return
	}
	e.rows.remove(ordinal)
	e.removeClass(ordinal, r.class)
	for _, id := range r.readers {
		e.removeReader(id, ordinal)
	}
	for _, region := range r.applicability.Regions {
		e.removeRegion(region, ordinal)
	}
	for _, bitmap := range []**roaring.Bitmap{&e.next.present, &e.next.undeclared, &e.next.everywhere, &e.next.dated} {
		e.drop(bitmap, ordinal)
	}
}

func (e *viewEdit) removeClass(ordinal uint32, key classKey) {
	c, _ := e.classes.get(key)
	e.drop(&c.documents, ordinal)
	if c.documents.IsEmpty() {
		e.classes.delete(key)
		return
	}
	e.classes.set(key, c)
}

func (e *viewEdit) insertRegion(region string, ordinal uint32) {
	bitmap, _ := e.regions.get(region)
	e.add(&bitmap, ordinal)
	e.regions.set(region, bitmap)
}

func (e *viewEdit) removeRegion(region string, ordinal uint32) {
	bitmap, ok := e.regions.get(region)
	if !ok {
		return // the row named the region twice
	}
	e.drop(&bitmap, ordinal)
	if bitmap.IsEmpty() {
		e.regions.delete(region)
		return
	}
	e.regions.set(region, bitmap)
}
