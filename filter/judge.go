package filter

import "github.com/cedar-policy/cedar-go"

// Judge decides about documents of one principal one by one: the recheck after
// a search. It asks the policies once per access class. It is exact: a verdict follows from the policies' text, the principal and the
// attributes alone, and is kept under the digests of all three. A Judge is not
// safe for concurrent use.
type Judge struct {
	policies *Policies // nil: nothing is admitted
	tenant   string
	names    map[Reader]bool
	user     cedar.Entity
	classes  shards[classKey, classDocuments]
	verdicts *verdicts
}

// Judge returns one for the principal under the policies, which may be newer
// than the View's. A principal of another tenant, or an unknown one, is
// admitted to nothing; one that does not fit the policies is ErrPrincipal.
func (v *View) Judge(policies *Policies, p Principal) (*Judge, error) {
	if p.Tenant != v.tenant || !p.known() || policies == nil {
		return &Judge{}, nil
	}
	user, err := policies.user(p)
	if err != nil {
		return nil, err
	}
	j := &Judge{
		policies: policies, tenant: p.Tenant, names: map[Reader]bool{}, user: user,
		classes: v.classes, verdicts: v.ledger.of(askedKey{policies.Digest(), p.Digest()}),
	}
	for _, name := range policies.names(p) {
		j.names[name] = true
	}
	return j, nil
}

// Admits decides about a document with this access row. Where the policies
// cannot be asked about it, it is not admitted, and Faults counts it.
func (j *Judge) Admits(a Access) bool {
	if j.policies == nil || !j.admitted(a.Readers) {
		return false
	}
	if known, ok := j.classes.get(classKeyOf(a.Attributes)); ok {
		return j.verdicts.of(j.policies, j.user, known.class)
	}
	record, err := documentRecord(j.tenant, a.Attributes)
	if err != nil {
		_ = j.policies.fault(err)
		return false
	}
	permitted, _ := j.policies.permit(j.user, documentEntity(record)) // its error is counted
	return permitted
}

func (j *Judge) admitted(r Readers) bool {
	if r.open() {
		return true
	}
	for _, reader := range r.List {
		if j.names[reader] {
			return true
		}
	}
	return false
}
