package filter

import "slices"

const pageSize = 256

// page holds values of neighbouring numbers; used is how many there are.
type page[T comparable] struct {
	values [pageSize]T
	used   int
}

// table is a persistent table of values by number; the zero value of T is
// none. An edit copies the list of pages and the pages it writes to. Pages
// without values are nil.
type table[T comparable] []*page[T]

func (t table[T]) get(number uint32) (value T) {
	if i := int(number / pageSize); i < len(t) && t[i] != nil {
		value = t[i].values[number%pageSize]
	}
	return value
}

func (t table[T]) edit() *tableEdit[T] {
	return &tableEdit[T]{table: slices.Clone(t), owned: map[*page[T]]bool{}}
}

// tableEdit is a table under construction.
type tableEdit[T comparable] struct {
	table[T]
	owned map[*page[T]]bool
}

// own returns the number's page, to be written to.
func (e *tableEdit[T]) own(number uint32) *page[T] {
	i := int(number / pageSize)
	if i >= len(e.table) {
		e.table = append(e.table, make(table[T], i+1-len(e.table))...)
	}
	if p := e.table[i]; p == nil || !e.owned[p] {
		owned := &page[T]{}
		if p != nil {
			*owned = *p
		}
		e.owned[owned] = true
		e.table[i] = owned
	}
	return e.table[i]
}

// insert puts a value where there is none.
func (e *tableEdit[T]) insert(number uint32, value T) {
	p := e.own(number)
	p.values[number%pageSize] = value
	p.used++
}

// replace puts a value in place of another.
func (e *tableEdit[T]) replace(number uint32, value T) { e.own(number).values[number%pageSize] = value }

// remove takes a value away that is there.
func (e *tableEdit[T]) remove(number uint32) {
	var none T
	p := e.own(number)
	p.values[number%pageSize] = none
	if p.used--; p.used == 0 {
		e.table[number/pageSize] = nil
	}
}
