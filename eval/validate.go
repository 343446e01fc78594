package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// validate refuses labels that contradict each other: a gate on such labels
// would prove nothing.
func (d *Dataset) validate() error {
	var errs []error
	for _, p := range d.Principals {
		errs = append(errs, d.validateVisible(p))
	}
	seen := map[string]bool{}
	for _, c := range d.Cases {
		if seen[c.ID] {
			errs = append(errs, fmt.Errorf("case %s: its id is not unique", c.ID))
		}
		seen[c.ID] = true
		errs = append(errs, d.validateCase(c))
	}
	errs = append(errs, d.validateAgreement())
	if len(d.Cases) == 0 {
		errs = append(errs, errors.New("it has no cases"))
	}
	return errors.Join(errs...)
}

func (d *Dataset) validateVisible(p Principal) error {
	visible, ok := d.Visible[p.Name]
	if !ok {
		return fmt.Errorf("principal %s has no visibility label", p.Name)
	}
	current := d.current(p.Tenant)
	for key, version := range visible {
		if current[key].Version != version {
			return fmt.Errorf("principal %s is said to see %s version %d, which is not its current version in tenant %s", p.Name, key, version, p.Tenant)
		}
	}
	return nil
}

func (d *Dataset) validateCase(c Case) error {
	if _, ok := d.principal(c.Principal); !ok {
		return fmt.Errorf("case %s: unknown principal %q", c.ID, c.Principal)
	}
	visible := d.Visible[c.Principal]
	for _, e := range c.Evidence {
		for _, key := range e.Documents {
			if visible[key] != e.Version {
				return fmt.Errorf("case %s: evidence %s version %d is not visible to %s", c.ID, key, e.Version, c.Principal)
			}
		}
	}
	for _, e := range c.Evidence {
		for _, key := range e.Documents {
			if slices.Contains(c.Unauthorized, key) || slices.Contains(c.OutOfScope, key) {
				return fmt.Errorf("case %s: %s is evidence and must not appear", c.ID, key)
			}
		}
	}
	for _, key := range c.Unauthorized {
		if _, ok := visible[key]; ok {
			return fmt.Errorf("case %s: %s is both unauthorized and visible to %s", c.ID, key, c.Principal)
		}
	}
	return nil
}

// validateAgreement refuses two answers to one question: the same words, by the
// same principal, in the same scope.
func (d *Dataset) validateAgreement() error {
	var errs []error
	first := map[string]Case{}
	for _, c := range d.Cases {
		question, err := json.Marshal([]any{c.Query, c.Principal, c.Region, c.AsOf, c.Exclude})
		if err != nil {
			return err
		}
		other, again := first[string(question)]
		if again && !reflect.DeepEqual(other.Evidence, c.Evidence) {
			errs = append(errs, fmt.Errorf("cases %s and %s ask the same and have other evidence", other.ID, c.ID))
		}
		first[string(question)] = c
	}
	return errors.Join(errs...)
}
