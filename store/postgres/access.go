package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"sluice/filter"
	"sluice/store"
	"sluice/store/encode"
)

const (
	putAccess = `update documents set access = $5, epoch = next.epoch, updated = $6 from next
		where collection = any($7) and ordinal = $3 returning ` + notified

	// putAccessOf is putAccess if the document ($8, $3) is as it was at its epoch $9
	// and the collection has the generations $10 still; else it changes nothing.
	putAccessOf = takeEpoch + `where exists (select from documents d join collections c on c.id = $2
		where d.collection = $8 and d.ordinal = $3 and d.epoch = $9 and c.generations is not distinct from $10) ` + feedEpoch + putAccess
)

// accessArguments are those of putAccess for a record that has its new access row.
func accessArguments(author int64, collection uint32, live []store.Generation, r store.Record) []any {
	row := encode.AppendAccess(nil, r.Access)
	return []any{uint8(store.DocumentChanged), collection, r.Ordinal, author, row, r.Updated.UnixMicro(), numbersOf(live)}
}

// replaceAccess writes a normal access row into every generation, unless it is
// the present one of r, the serving one's record.
func (t *txn) replaceAccess(collection uint32, live []store.Generation, r store.Record, access filter.Access) (store.Receipt, error) {
	if encode.SameAccess(r.Access, access) {
		return store.Receipt{Record: r, Unchanged: true}, nil
	}
	r.Access, r.Updated = access, now()
	err := t.row(nextEpoch+putAccess, accessArguments(t.author, collection, live, r)...).Scan(&r.Epoch, nil)
	return store.Receipt{Record: r, AccessOnly: true}, err
}

// errConflict: the document or the generations changed between the read and the write.
var errConflict = errors.New("it changed meanwhile")

// SetAccess replaces the access row. change runs before the transaction, which
// makes sure that the row is still the one that change was given.
func (s *Store) SetAccess(ctx context.Context, collection uint32, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error) {
	for {
		c, old, err := s.served(ctx, collection, key)
		if err != nil {
			return store.Receipt{}, err
		}
		access, err := change(old.Access)
		if err == nil {
			access, err = store.NormalAccess(access)
		}
		if err != nil {
			return store.Receipt{}, err
		}
		receipt, err := s.setAccess(ctx, c, old, access)
		if !errors.Is(err, errConflict) {
			return receipt, err
		}
	}
}

// served returns a collection and the record of a key in its serving generation,
// which most often is the first: then in one round trip.
func (s *Store) served(ctx context.Context, collection uint32, key string) (c store.Collection, r store.Record, err error) {
	var inFirst error
	batch := &pgx.Batch{}
	batch.Queue(collectionByID, collection).Query(func(rows pgx.Rows) (err error) {
		c, err = one(rows, scanCollection)
		return err
	})
	batch.Queue(selectRecords+byKey, collection, []byte(key)).Query(func(rows pgx.Rows) error {
		r, inFirst = one(rows, scanRecord)
		return nil
	})
	err = s.call(ctx, func(ctx context.Context) error { return s.pool.SendBatch(ctx, batch).Close() })
	switch {
	case err != nil:
		return c, r, err
	case c.Serving().ID != collection:
		r, err = s.Lookup(ctx, c.Serving().ID, key)
		return c, r, err
	}
	return c, r, failure(ctx, inFirst)
}

func (s *Store) setAccess(ctx context.Context, c store.Collection, r store.Record, access filter.Access) (store.Receipt, error) {
	if encode.SameAccess(r.Access, access) {
		return store.Receipt{Record: r, Unchanged: true}, nil
	}
	before := r.Epoch
	r.Access, r.Updated = access, now()
	err := s.again(ctx, func(ctx context.Context) (err error) {
		r.Epoch, err = s.putAccess(ctx, c, r, before)
		return err
	})
	if err != nil {
		return store.Receipt{}, err
	}
	s.hints.read(r.Epoch)
	return store.Receipt{Record: r, AccessOnly: true}, nil
}

// putAccess makes the change in one round trip: what a pipeline brings
// is one transaction. That is what revocations wait for.
func (s *Store) putAccess(ctx context.Context, c store.Collection, r store.Record, before uint64) (epoch uint64, err error) {
	var generations []byte // null: it was never reindexed
	if c.Generations != nil {
		generations = encode.Generations(c.Generations)
	}
	arguments := append(accessArguments(s.author, c.ID, c.Live(), r), r.Collection, bigint(before), generations)
	batch := &pgx.Batch{}
	batch.Queue("select from collections where id = $1 for no key update", c.ID)
	batch.Queue(putAccessOf, arguments...).QueryRow(func(row pgx.Row) error { return row.Scan(&epoch, nil) })
	if err = s.pool.SendBatch(ctx, batch).Close(); errors.Is(err, pgx.ErrNoRows) {
		err = errConflict
	}
	return epoch, err
}
