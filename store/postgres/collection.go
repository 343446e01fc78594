package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/store"
	"sluice/store/encode"
)

const selectCollections = "select id, tenant, name, analyzer, code_bits, chunker, own_dense, own_multi, created, generations from collections"

func scanCollection(row pgx.CollectableRow) (c store.Collection, err error) {
	var tenant, name, analyzer, chunker, generations []byte
	var created int64
	err = row.Scan(&c.ID, &tenant, &name, &analyzer, &c.Settings.CodeBits, &chunker, &c.Settings.Own.Dense, &c.Settings.Own.Multi, &created, &generations)
	c.Tenant, c.Name, c.Settings.Analyzer, c.Settings.Chunker = string(tenant), string(name), string(analyzer), string(chunker)
	c.Created = time.UnixMicro(created).UTC()
	if err == nil && generations != nil {
		c.Generations, err = encode.DecodeGenerations(generations)
	}
	return c, err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func findCollection(ctx context.Context, q querier, tenant, name string) (store.Collection, error) {
	return find(ctx, q, scanCollection, selectCollections+" where sha256(tenant) = sha256($1) and sha256(name) = sha256($2)", []byte(tenant), []byte(name))
}

// find returns the only row of a query, or ErrNotFound.
func find[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], query string, arguments ...any) (found T, err error) {
	rows, err := q.Query(ctx, query, arguments...)
	if err != nil {
		return found, err
	}
	return one(rows, scan)
}

// one returns the only row, or ErrNotFound.
func one[T any](rows pgx.Rows, scan pgx.RowToFunc[T]) (T, error) {
	found, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrNotFound
	}
	return found, err
}

// Collection returns a collection by its name.
func (s *Store) Collection(ctx context.Context, tenant, name string) (c store.Collection, err error) {
	err = s.call(ctx, func(ctx context.Context) (err error) {
		c, err = findCollection(ctx, s.pool, tenant, name)
		return err
	})
	return c, err
}

// Collections returns all collections in the order of their creation.
func (s *Store) Collections(ctx context.Context) (all []store.Collection, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, selectCollections+" order by id")
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanCollection)
		return err
	})
	return all, err
}

// CreateCollection creates a collection, or returns the one that has the name.
func (s *Store) CreateCollection(ctx context.Context, tenant, name string, settings store.Settings) (c store.Collection, created bool, err error) {
	if len(tenant) > store.MaxKeyBytes || len(name) > store.MaxKeyBytes {
		return c, false, fmt.Errorf("%w: tenant and name may have %d bytes each", store.ErrInvalid, store.MaxKeyBytes)
	}
	if err := settings.Validate(); err != nil {
		return c, false, err
	}
	err = s.write(ctx, func(t *txn) (err error) {
		c, created, err = t.createCollection(tenant, name, settings)
		return err
	})
	if err != nil {
		return store.Collection{}, false, err
	}
	return c, created, nil
}

func (t *txn) createCollection(tenant, name string, settings store.Settings) (store.Collection, bool, error) {
	c, err := findCollection(t.ctx, t.tx, tenant, name)
	if err == nil && c.Settings != settings {
		return store.Collection{}, false, fmt.Errorf("%w: %+v", store.ErrSettingsDiffer, c.Settings)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, false, err
	}
	c = store.Collection{Tenant: tenant, Name: name, Settings: settings, Created: now()}
	if err := t.row("update meta set last_collection = last_collection + 1 returning last_collection").Scan(&c.ID); err != nil {
		return store.Collection{}, false, err
	}
	if _, err := t.change(store.CollectionCreated, c.ID, 0); err != nil {
		return store.Collection{}, false, err
	}
	err = t.exec(`insert into collections (id, tenant, name, analyzer, code_bits, chunker, own_dense, own_multi, created)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, c.ID, []byte(tenant), []byte(name), []byte(settings.Analyzer),
		settings.CodeBits, []byte(settings.Chunker), settings.Own.Dense, settings.Own.Multi, c.Created.UnixMicro())
	if err == nil {
		err = t.exec("insert into counters (id) values ($1)", c.ID)
	}
	return c, true, err
}
