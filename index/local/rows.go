package local

import (
	"sluice/filter"
	"sluice/index"
)

// Documents calls visit with every live document that is allowed and has rows,
// until it returns false. The rows are ascending, and visit's until it returns.
func (r *Reader) Documents(allowed filter.Set, visit func(ordinal uint32, rows []uint32) bool) error {
	return r.documents(visit, func(s *segment, each func(document) bool) {
		s.eachShared(allowed, func(_ int, d document) bool { return each(d) })
	})
}

// AllDocuments is Documents without a Set.
func (r *Reader) AllDocuments(visit func(ordinal uint32, rows []uint32) bool) error {
	return r.documents(visit, func(s *segment, each func(document) bool) {
		for d := range s.documents() {
			if !each(s.document(d)) {
				return
			}
		}
	})
}

func (r *Reader) documents(visit func(ordinal uint32, rows []uint32) bool, of func(*segment, func(document) bool)) error {
	memory, err := r.begin()
	if err != nil {
		return err
	}
	defer r.end(memory)
	var rows []uint32
	more := true
	for _, p := range r.state.parts {
		of(p.seg, func(d document) bool {
			if p.isDeleted(d.ordinal) {
				return true
			}
			rows = rows[:0]
			for slot := d.lo; slot < d.hi; slot++ {
				rows = append(rows, p.seg.row(slot))
			}
			more = visit(d.ordinal, rows)
			return more
		})
		if !more {
			break
		}
	}
	return nil
}

// Rows returns how many live rows the allowed documents have.
func (r *Reader) Rows(allowed filter.Set) (int, error) {
	memory, err := r.begin()
	if err != nil {
		return 0, err
	}
	defer r.end(memory)
	return int(r.state.view(allowed).rows), nil
}

// Holds reports whether the row was live in the snapshot and of the ordinal.
// Once the Reader is closed nothing is.
func (r *Reader) Holds(hit index.Hit) bool {
	if !r.state.acquire() {
		return false
	}
	defer r.state.release()
	for _, p := range r.state.parts {
		if p.holds(hit.Ordinal, hit.Row) {
			return true
		}
	}
	return false
}
