package pebble

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
	"sluice/store/encode"
)

func readPolicies(r pebble.Reader) (store.PolicySource, error) {
	p, err := getValue(r, policiesKey(), encode.DecodePolicies)
	if errors.Is(err, store.ErrNotFound) {
		return store.PolicySource{}, nil
	}
	return p, err
}

// Policies returns the policies in force, the zero value if none were ever set.
func (s *Store) Policies(ctx context.Context) (p store.PolicySource, err error) {
	err = s.view(ctx, func(r pebble.Reader) (err error) {
		p, err = readPolicies(r)
		return err
	})
	return p, err
}

// SetPolicies puts policies in force, unless they are those in force.
func (s *Store) SetPolicies(ctx context.Context, p store.PolicySource) (uint64, bool, error) {
	body := encode.Policies(p)
	var epoch uint64
	var changed bool
	err := s.submit(ctx, func(t *txn) (err error) {
		epoch, changed, err = t.setPolicies(body)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return epoch, changed, nil
}

// setPolicies returns the epoch in which the policies were put in force or, if
// they were in force already, the present epoch.
func (t *txn) setPolicies(body []byte) (epoch uint64, changed bool, err error) {
	present, err := readPolicies(t.store.db)
	if err != nil {
		return 0, false, err
	}
	if bytes.Equal(encode.Policies(present), body) {
		return t.meta.epoch, false, nil
	}
	if err := t.set(policiesKey(), body); err != nil {
		return 0, false, err
	}
	epoch, err = t.change(store.PoliciesChanged, 0, 0)
	return epoch, true, err
}
