package filter

import "slices"

// Admits decides about one document of the principal's own tenant, by itself:
// readers admit or are undeclared, a policy permits and none forbids. It is the
// oracle of View and Judge. With an error, which says why the policies could
// not be asked, the answer is false.
func (p *Policies) Admits(principal Principal, a Access) (bool, error) {
	if p == nil || !principal.known() || !a.Readers.admit(p.names(principal)) {
		return false, nil
	}
	user, err := p.user(principal)
	if err != nil {
		return false, err
	}
	record, err := documentRecord(principal.Tenant, a.Attributes)
	if err != nil {
		return false, p.fault(err)
	}
	return p.permit(user, documentEntity(record))
}

// admit reports whether the list admits a principal known by these names.
func (r Readers) admit(names []Reader) bool {
	return r.open() || slices.ContainsFunc(r.List, func(reader Reader) bool { return slices.Contains(names, reader) })
}

// ReaderNumbers returns the greatest number that was given to a reader, and for
// how many there is room.
func (v *View) ReaderNumbers() (last uint32, room int) { return v.lastReader, len(v.names) * pageSize }
