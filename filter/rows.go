package filter

import "slices"

const pageSize = 256

// row is what a View remembers of a document to be able to take it out again.
type row struct {
	class         classKey
	readers       Readers
	applicability Applicability
}

// page holds rows of neighbouring ordinals; used is how many there are.
type page struct {
	rows [pageSize]*row
	used int
}

// rows is a persistent table of rows by ordinal: an edit copies the table of
// pages and the pages it writes to. Pages without rows are nil.
type rows []*page

func (r rows) get(ordinal uint32) *row {
	if i := int(ordinal / pageSize); i < len(r) && r[i] != nil {
		return r[i].rows[ordinal%pageSize]
	}
	return nil
}

// rowsEdit is a rows under construction.
type rowsEdit struct {
	rows
	owned map[*page]bool
}

func (r rows) edit() *rowsEdit {
	return &rowsEdit{rows: slices.Clone(r), owned: map[*page]bool{}}
}

// own returns the ordinal's page, to be written to.
func (e *rowsEdit) own(ordinal uint32) *page {
	i := int(ordinal / pageSize)
	if i >= len(e.rows) {
		e.rows = append(e.rows, make(rows, i+1-len(e.rows))...)
	}
	if p := e.rows[i]; p == nil || !e.owned[p] {
		owned := &page{}
		if p != nil {
			*owned = *p
		}
		e.owned[owned] = true
		e.rows[i] = owned
	}
	return e.rows[i]
}

// insert puts a row where there is none.
func (e *rowsEdit) insert(ordinal uint32, r *row) {
	p := e.own(ordinal)
	p.rows[ordinal%pageSize] = r
	p.used++
}

// remove takes a row away that is there.
func (e *rowsEdit) remove(ordinal uint32) {
	p := e.own(ordinal)
	p.rows[ordinal%pageSize] = nil
	if p.used--; p.used == 0 {
		e.rows[ordinal/pageSize] = nil
	}
}
