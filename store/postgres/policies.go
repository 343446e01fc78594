package postgres

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"sluice/store"
	"sluice/store/encode"
)

const selectPolicies = "select body from policies"

// Policies returns the policies in force, the zero value if none were ever set.
func (s *Store) Policies(ctx context.Context) (p store.PolicySource, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		var body []byte
		err := s.pool.QueryRow(ctx, selectPolicies).Scan(&body)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			p, err = encode.DecodePolicies(body)
		}
		return err
	})
	return p, err
}

// SetPolicies puts policies in force, unless they are those in force.
func (s *Store) SetPolicies(ctx context.Context, p store.PolicySource) (epoch uint64, changed bool, err error) {
	body := encode.Policies(p)
	err = s.write(ctx, func(t *txn) (err error) {
		epoch, changed, err = t.setPolicies(body)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return epoch, changed, nil
}

// setPolicies returns the epoch in which the policies were put in force or, if
// they were in force already, the present epoch. The lock on the epoch keeps
// others from setting any meanwhile.
func (t *txn) setPolicies(body []byte) (epoch uint64, changed bool, err error) {
	if err := t.row("select epoch from meta for update").Scan(&epoch); err != nil {
		return 0, false, err
	}
	present := encode.Policies(store.PolicySource{})
	if err := t.row(selectPolicies).Scan(&present); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, false, err
	}
	if bytes.Equal(present, body) {
		return epoch, false, nil
	}
	if err := t.exec("insert into policies (body) values ($1) on conflict (one) do update set body = excluded.body", body); err != nil {
		return 0, false, err
	}
	epoch, err = t.change(store.PoliciesChanged, 0, 0)
	return epoch, true, err
}
