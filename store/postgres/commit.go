package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"sluice/filter"
	"sluice/store"
	"sluice/store/encode"
)

// txn is one write's transaction. Locks are taken in one order: the document's
// row, the collection's, that of the epoch.
type txn struct {
	ctx context.Context
	tx  pgx.Tx
}

func (t *txn) row(sql string, args ...any) pgx.Row { return t.tx.QueryRow(t.ctx, sql, args...) }

func (t *txn) exec(sql string, args ...any) error {
	_, err := t.tx.Exec(t.ctx, sql, args...)
	return err
}

// change takes the next epoch, puts the change into the feed and notifies.
// From here on other writes wait for this one.
func (t *txn) change(kind store.ChangeKind, collection, ordinal uint32) (epoch uint64, err error) {
	err = t.row(`with next as (update meta set epoch = epoch + 1 returning epoch)
		insert into changes (epoch, kind, collection, ordinal) select epoch, $1, $2, $3 from next
		returning epoch, pg_notify('`+channel+`', '')::text`, uint8(kind), collection, ordinal).Scan(&epoch, nil)
	return epoch, err
}

// lookup returns the record of a key and keeps others from changing it.
func (t *txn) lookup(collection uint32, key string) (store.Record, error) {
	rows, err := t.tx.Query(t.ctx, selectRecords+byKey+" for update", collection, []byte(key))
	if err != nil {
		return store.Record{}, err
	}
	return one(rows, scanRecord)
}

// Commit creates or replaces a document.
func (s *Store) Commit(ctx context.Context, collection uint32, v store.Version) (store.Receipt, error) {
	if err := v.Validate(); err != nil {
		return store.Receipt{}, err
	}
	access, err := store.NormalAccess(v.Access)
	if err != nil {
		return store.Receipt{}, err
	}
	v.Access = access
	p := prepared{Version: v, text: s.codec.Text(v.Text, v.Chunks), vectors: encode.Vectors(v.Dimensions, v.Vectors)}
	return s.receipt(ctx, func(t *txn) (store.Receipt, error) { return t.commit(collection, p) })
}

// receipt runs a write that gives a receipt.
func (s *Store) receipt(ctx context.Context, write func(*txn) (store.Receipt, error)) (r store.Receipt, err error) {
	err = s.write(ctx, func(t *txn) (err error) {
		r, err = write(t)
		return err
	})
	if err != nil {
		return store.Receipt{}, err
	}
	return r, nil
}

// prepared is a version with its encoded content.
type prepared struct {
	store.Version
	text    []byte
	vectors []byte
}

func (t *txn) commit(collection uint32, v prepared) (store.Receipt, error) {
	old, err := t.lookup(collection, v.Key)
	created := errors.Is(err, store.ErrNotFound)
	if err != nil && !created {
		return store.Receipt{}, err
	}
	if created {
		old = store.Record{Collection: collection, Key: v.Key}
		err = t.exists(collection)
	} else {
		v.Access = v.Access.Keeping(v.Keeps, old.Access)
	}
	switch {
	case err != nil:
		return store.Receipt{}, err
	case !created && old.Identity == v.Identity && old.Chunker == v.Chunker && old.Model == v.Model:
		return t.replaceAccess(old, v.Access)
	case v.Vectors == nil && len(v.Chunks) > 0:
		return store.Receipt{}, store.ErrVectorsNeeded
	}
	r, err := t.replace(old, v, created)
	return store.Receipt{Record: r, Created: created}, err
}

func (t *txn) exists(collection uint32) error {
	var there bool
	err := t.row("select exists (select from collections where id = $1)", collection).Scan(&there)
	if err == nil && !there {
		err = fmt.Errorf("collection %d: %w", collection, store.ErrNotFound)
	}
	return err
}

// replace writes the version in place of old.
func (t *txn) replace(old store.Record, v prepared, created bool) (store.Record, error) {
	r := old
	r.Title, r.Format, r.Chunker, r.Model, r.Access = v.Title, v.Format, v.Chunker, v.Model, v.Access
	if created || r.Identity != v.Identity {
		r.Version++
	}
	r.Identity, r.Rows, r.Coded = v.Identity, uint32(len(v.Chunks)), v.Codes != nil
	if err := t.number(&r, created); err != nil {
		return store.Record{}, err
	}
	batch := &pgx.Batch{}
	if !created {
		queueRemoval(batch, old)
	}
	queueContent(batch, r, kindText, v.text)
	queueContent(batch, r, kindVectors, v.vectors)
	queueCodes(batch, r, v.Codes)
	if err := t.tx.SendBatch(t.ctx, batch).Close(); err != nil {
		return store.Record{}, err
	}
	return t.put(r)
}

// number gives the record new rows and, if it is new, an ordinal. They are taken
// with the lock that lasts to the commit, so they grow with the epochs.
func (t *txn) number(r *store.Record, created bool) error {
	ordinals := 0
	if created {
		ordinals = 1
	}
	var nextOrdinal, nextRow int64
	err := t.row(`update collections set next_ordinal = next_ordinal + $2, next_row = next_row + $3 where id = $1
		returning next_ordinal, next_row`, r.Collection, ordinals, r.Rows).Scan(&nextOrdinal, &nextRow)
	if err != nil {
		return err
	}
	if nextOrdinal > math.MaxUint32 || nextRow > math.MaxUint32 {
		return store.ErrTooManyRows
	}
	r.FirstRow = uint32(nextRow - int64(r.Rows))
	if created {
		r.Ordinal = uint32(nextOrdinal - 1)
	}
	return nil
}

// bodyBytes is how much of a content one row holds, and of codes one statement.
const bodyBytes = 64 << 20

func queueContent(batch *pgx.Batch, r store.Record, kind int16, body []byte) {
	for part := 0; part == 0 || len(body) > 0; part++ {
		n := min(len(body), bodyBytes)
		batch.Queue("insert into contents (collection, ordinal, kind, part, body) values ($1, $2, $3, $4, $5)",
			r.Collection, r.Ordinal, kind, part, body[:n])
		body = body[n:]
	}
}

func queueCodes(batch *pgx.Batch, r store.Record, codes [][]byte) {
	for first := 0; first < len(codes); {
		end, size := first, 0
		for end < len(codes) && (end == first || size+len(codes[end]) <= bodyBytes) {
			size += len(codes[end])
			end++
		}
		batch.Queue(`insert into codes (collection, "row", body) select $1, $2 + at - 1, coalesce(body, '') from unnest($3::bytea[]) with ordinality as c(body, at)`,
			r.Collection, int64(r.FirstRow)+int64(first), codes[first:end])
		first = end
	}
}

// queueRemoval removes what belongs to a version.
func queueRemoval(batch *pgx.Batch, r store.Record) {
	batch.Queue("delete from contents where collection = $1 and ordinal = $2", r.Collection, r.Ordinal)
	if r.Coded {
		first := int64(r.FirstRow)
		batch.Queue(`delete from codes where collection = $1 and "row" >= $2 and "row" < $3`, r.Collection, first, first+int64(r.Rows))
	}
}

const putDocument = `insert into documents (` + recordColumns + `)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
	on conflict (collection, ordinal) do update set version = excluded.version, title = excluded.title, format = excluded.format,
	chunker = excluded.chunker, model = excluded.model, identity = excluded.identity, first_row = excluded.first_row,
	rows = excluded.rows, coded = excluded.coded, access = excluded.access, epoch = excluded.epoch, updated = excluded.updated`

// put writes a changed record with its change.
func (t *txn) put(r store.Record) (store.Record, error) {
	epoch, err := t.change(store.DocumentChanged, r.Collection, r.Ordinal)
	if err != nil {
		return store.Record{}, err
	}
	r.Epoch, r.Updated = epoch, now()
	return r, t.exec(putDocument, values(r)...)
}

// replaceAccess writes a normal access row, unless it is the present one.
func (t *txn) replaceAccess(r store.Record, access filter.Access) (store.Receipt, error) {
	if bytes.Equal(encode.AppendAccess(nil, r.Access), encode.AppendAccess(nil, access)) {
		return store.Receipt{Record: r, Unchanged: true}, nil
	}
	r.Access = access
	r, err := t.put(r)
	return store.Receipt{Record: r, AccessOnly: true}, err
}

// errConflict: the document changed between the read and the write.
var errConflict = errors.New("the document changed meanwhile")

// SetAccess replaces the access row. change runs outside of the transaction,
// which only makes sure that the row is still the one that change was given.
func (s *Store) SetAccess(ctx context.Context, collection uint32, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error) {
	for {
		old, err := s.Lookup(ctx, collection, key)
		if err != nil {
			return store.Receipt{}, err
		}
		access, err := change(old.Access)
		if err != nil {
			return store.Receipt{}, err
		}
		if access, err = store.NormalAccess(access); err != nil {
			return store.Receipt{}, err
		}
		receipt, err := s.receipt(ctx, func(t *txn) (store.Receipt, error) { return t.setAccess(old, access) })
		if !errors.Is(err, errConflict) {
			return receipt, err
		}
	}
}

func (t *txn) setAccess(old store.Record, access filter.Access) (store.Receipt, error) {
	r, err := t.lookup(old.Collection, old.Key)
	if err != nil {
		return store.Receipt{}, err
	}
	if r.Epoch != old.Epoch {
		return store.Receipt{}, errConflict
	}
	return t.replaceAccess(r, access)
}

// Delete removes a document.
func (s *Store) Delete(ctx context.Context, collection uint32, key string) (store.Receipt, error) {
	return s.receipt(ctx, func(t *txn) (store.Receipt, error) { return t.delete(collection, key) })
}

func (t *txn) delete(collection uint32, key string) (store.Receipt, error) {
	r, err := t.lookup(collection, key)
	if err != nil {
		return store.Receipt{}, err
	}
	batch := &pgx.Batch{}
	queueRemoval(batch, r)
	batch.Queue("delete from documents where collection = $1 and ordinal = $2", collection, r.Ordinal)
	if err := t.tx.SendBatch(t.ctx, batch).Close(); err != nil {
		return store.Receipt{}, err
	}
	r.Epoch, err = t.change(store.DocumentChanged, collection, r.Ordinal)
	return store.Receipt{Record: r}, err
}
