package filter

import (
	"errors"
	"fmt"

	"github.com/cedar-policy/cedar-go"
)

// ErrPrincipal is wrapped when a principal's attributes are not what the
// policy schema declares. Such a principal is admitted to nothing.
var ErrPrincipal = errors.New("the principal does not fit the policy schema")

// CheckDocument says what keeps a document with these attributes from ever
// being permitted: a type that differs from the schema's, or a missing attribute.
func (p *Policies) CheckDocument(a Attributes) error {
	if p == nil || p.schema == nil {
		return nil
	}
	record, err := documentRecord("", a)
	if err != nil {
		return err
	}
	return conforms(record, p.schema.document)
}

// user is the principal as the policies see it, if it fits their schema.
func (p *Policies) user(principal Principal) (cedar.Entity, error) {
	user, err := p.fitting(principal)
	if err != nil {
		return cedar.Entity{}, p.fault(err)
	}
	return user, nil
}

// fitting is user without counting a fault.
func (p *Policies) fitting(principal Principal) (cedar.Entity, error) {
	user, err := userEntity(principal)
	if err == nil && p.schema != nil {
		err = conforms(user.Attributes, p.schema.user)
	}
	if err != nil {
		return cedar.Entity{}, fmt.Errorf("%w: %w", ErrPrincipal, err)
	}
	return user, nil
}

// permit is the decision for a user and an access class.
func (p *Policies) permit(user, document cedar.Entity) (bool, error) {
	v, err := p.authorize(user, document)
	if err != nil {
		return false, p.fault(err)
	}
	return v.permitted, nil
}

// authorize asks Cedar. With an error nothing is permitted.
func (p *Policies) authorize(user, document cedar.Entity) (v verdict, err error) {
	if p.schema == nil {
		return v, nil
	}
	if err := conforms(document.Attributes, p.schema.document); err != nil {
		return v, fmt.Errorf("document: %w", err)
	}
	world := &entities{user: user, document: document, groups: p.groups.entities, actions: p.schema.actions}
	request := cedar.Request{Principal: user.UID, Action: readAction, Resource: world.document.UID}
	decision, diagnostic := cedar.Authorize(p.set, world, request)
	v.Diagnostic = diagnostic
	if err := p.failedForbid(diagnostic); err != nil {
		return v, err
	}
	v.permitted = decision == cedar.Allow
	return v, nil
}

// failedForbid finds a forbid that could not be evaluated. Cedar skips it;
// here it denies, because it might have forbidden.
func (p *Policies) failedForbid(diagnostic cedar.Diagnostic) error {
	for _, failure := range diagnostic.Errors {
		if p.set.Get(failure.PolicyID).Effect() == cedar.Forbid {
			return fmt.Errorf("%s: forbid failed: %s", failure.PolicyID, failure.Message)
		}
	}
	return nil
}

func (p *Policies) fault(err error) error {
	p.faults.Add(1)
	p.lastFault.Store(&err)
	return err
}

// Faults returns how many decisions were denied because of an error rather
// than by a policy, and the last such error. A healthy set has none.
func (p *Policies) Faults() (count uint64, last error) {
	if p == nil || p.lastFault.Load() == nil {
		return 0, nil
	}
	return p.faults.Load(), *p.lastFault.Load()
}
