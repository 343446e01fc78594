package filter

import (
	"slices"

	"github.com/cedar-policy/cedar-go"
)

// Explanation says what decides whether a principal may read a document. It is
// readable if both halves say so.
type Explanation struct {
	Undeclared bool     // no readers are declared: they leave it to the policies
	Readers    []Reader // those on the document's list that the principal is
	Permitted  bool     // by the policies
	Decisive   []string // file:line:column of the policies that permit, or of those that forbid
	Forbidden  bool     // the decisive ones forbid
	Errors     []string // why policies could not be asked, or evaluated
	Starter    bool     // the policies are the starter's, and in no directory
}

// Listed reports whether the readers admit the principal.
func (e Explanation) Listed() bool { return e.Undeclared || len(e.Readers) > 0 }

// Admitted reports whether both halves say so.
func (e Explanation) Admitted() bool { return e.Listed() && e.Permitted }

// Explain decides about one document of the principal's own tenant as View and
// Judge do, and says why. Faults does not count it.
func (p *Policies) Explain(principal Principal, a Access) Explanation {
	if p == nil || !principal.known() {
		return Explanation{Errors: []string{"no principal, or no policies: nothing is admitted"}}
	}
	e := Explanation{Undeclared: a.Readers.open(), Starter: p.isStarter()}
	names := p.names(principal)
	for _, reader := range a.Readers.List {
		if slices.Contains(names, reader) {
			e.Readers = append(e.Readers, reader)
		}
	}
	decision, err := p.explained(principal, a)
	if err != nil {
		e.Errors = append(e.Errors, err.Error())
	}
	e.Permitted, e.Forbidden = decision.permitted, !decision.permitted && len(decision.Reasons) > 0
	for _, reason := range decision.Reasons {
		e.Decisive = append(e.Decisive, string(reason.PolicyID))
	}
	for _, failure := range decision.Errors {
		e.Errors = append(e.Errors, string(failure.PolicyID)+": "+failure.Message)
	}
	slices.Sort(e.Decisive)
	return e
}

func (p *Policies) explained(principal Principal, a Access) (verdict, error) {
	user, err := p.fitting(principal)
	if err != nil {
		return verdict{}, err
	}
	record, err := documentRecord(principal.Tenant, a.Attributes)
	if err != nil {
		return verdict{}, err
	}
	return p.authorize(user, documentEntity(record))
}

// verdict is a decision with what Cedar says of it.
type verdict struct {
	permitted bool
	cedar.Diagnostic
}
