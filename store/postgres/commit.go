package postgres

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"sluice/store"
	"sluice/store/encode"
)

// txn is one write's transaction. Locks are taken in one order: the collection's
// row, then, last, that of the epoch.
type txn struct {
	ctx    context.Context
	tx     pgx.Tx
	author int64
}

func (t *txn) row(sql string, args ...any) pgx.Row { return t.tx.QueryRow(t.ctx, sql, args...) }

func (t *txn) exec(sql string, args ...any) error {
	_, err := t.tx.Exec(t.ctx, sql, args...)
	return err
}

// A statement that begins so takes the next epoch and puts a change of the kind,
// collection, ordinal and author ($1 to $4) into the feed. One that returns
// notified tells the epoch, here and to those who listen.
const (
	nextEpoch = takeEpoch + feedEpoch
	takeEpoch = `with next as (update meta set epoch = epoch + 1 ` // a condition may follow
	feedEpoch = `returning epoch, id),
		fed as (insert into changes (epoch, kind, collection, ordinal, author) select epoch, $1, $2, $3, $4 from next) `
	notified = `next.epoch, pg_notify('` + channel + `', next.id || ' ' || next.epoch)::text`
)

// change makes a change. From here on other writes wait for this one.
func (t *txn) change(kind store.ChangeKind, collection, ordinal uint32) (epoch uint64, err error) {
	err = t.row(nextEpoch+"select "+notified+" from next", uint8(kind), collection, ordinal, t.author).Scan(&epoch, nil)
	return epoch, err
}

// lookup returns the record of a key in a generation.
func (t *txn) lookup(collection uint32, key string) (store.Record, error) {
	return lookup(t.ctx, t.tx, collection, key)
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
	p := prepared{Version: v, encoded: s.encode(v.Text, v.Build())}
	for _, b := range v.Builds {
		p.builds = append(p.builds, s.encode(v.Text, b))
	}
	if v.Parsed != nil {
		p.parsed = s.codec.Deflate(v.Parsed)
	}
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
	s.hints.read(r.Epoch)
	return r, nil
}

// encoded is a build with its encoded content.
type encoded struct {
	store.Build
	text    []byte
	vectors []byte
}

func (s *Store) encode(text string, b store.Build) encoded {
	return encoded{b, s.codec.Text(text, b.Chunks), encode.Vectors(b.Dimensions, b.Vectors)}
}

func (b encoded) lacksVectors() bool { return b.Vectors == nil && len(b.Chunks) > 0 }

// prepared is a version with its encoded content.
type prepared struct {
	store.Version
	encoded
	builds []encoded
	parsed []byte // nil: none
}

func (t *txn) commit(collection uint32, v prepared) (store.Receipt, error) {
	live, err := t.live(collection)
	if err == nil {
		err = v.CheckFor(collection, live)
	}
	if err != nil {
		return store.Receipt{}, err
	}
	old, err := t.lookup(live[0].ID, v.Key)
	created := errors.Is(err, store.ErrNotFound)
	if err == nil {
		v.Access = v.Access.Keeping(v.Keeps, old.Access)
	}
	switch {
	case err == nil && old.Identity == v.Identity && old.Chunker == v.Version.Chunker && old.Model == v.Version.Model:
		return t.replaceAccess(collection, live, old, v.Access)
	case v.lacksVectors() || slices.ContainsFunc(v.builds, encoded.lacksVectors):
		return store.Receipt{}, store.ErrVectorsNeeded
	case created:
		old = store.Record{Collection: live[0].ID, Key: v.Key}
		old.Ordinal, err = t.number(collection, "next_ordinal", 1)
	}
	if err != nil {
		return store.Receipt{}, err
	}
	r, err := t.commitAll(collection, live, old, v)
	return store.Receipt{Record: r, Created: created}, err
}

// commitAll writes the version into every generation, in place of old in the
// serving one, and returns the record there.
func (t *txn) commitAll(collection uint32, live []store.Generation, old store.Record, v prepared) (store.Record, error) {
	builds, err := v.buildsFor(live)
	if err != nil {
		return old, err
	}
	r := old
	r.Title, r.Format, r.Access = v.Title, v.Format, v.Access
	if r.Version == 0 || r.Identity != v.Identity {
		r.Version++
	}
	r.Identity, r.Updated = v.Identity, now()
	records := make([]store.Record, len(builds))
	for i, b := range builds {
		if records[i], err = t.replace(r, b, v.parsed); err != nil {
			return r, err
		}
	}
	if records, err = t.put(collection, records); err != nil {
		return r, err
	}
	return records[0], nil
}

// buildsFor are the builds for the live generations, that for the serving one first.
func (v prepared) buildsFor(live []store.Generation) ([]encoded, error) {
	builds := []encoded{v.encoded}
	for _, g := range live[1:] {
		i, err := v.BuildFor(g)
		if err != nil {
			return nil, err
		}
		builds = append(builds, v.builds[i])
	}
	return builds, nil
}

// replace writes a document's content into the build's generation, in place of
// what is there, and returns its record there, which is not written yet.
func (t *txn) replace(r store.Record, b encoded, parsed []byte) (store.Record, error) {
	if b.Generation != 0 {
		r.Collection = b.Generation
	}
	batch := &pgx.Batch{}
	queueRemoval(batch, r.Collection, r.Ordinal)
	r.Chunker, r.Model, r.Rows, r.Coded = b.Chunker, b.Model, uint32(len(b.Chunks)), b.Codes != nil
	r.Class = r.Access.Class()
	first, err := t.number(r.Collection, "next_row", len(b.Chunks))
	if err != nil {
		return store.Record{}, err
	}
	r.FirstRow = first
	queueContent(batch, r, kindText, b.text)
	queueContent(batch, r, kindVectors, b.vectors)
	if parsed != nil {
		queueContent(batch, r, kindParsed, parsed)
	}
	queueCodes(batch, r, b.Codes)
	return r, t.tx.SendBatch(t.ctx, batch).Close()
}

// number takes n of a counter's numbers and returns the first. They are taken
// with a lock that lasts to the commit, so they grow with the epochs.
func (t *txn) number(id uint32, counter string, n int) (uint32, error) {
	var next int64
	if err := t.row("update counters set "+counter+" = "+counter+" + $2 where id = $1 returning "+counter, id, n).Scan(&next); err != nil {
		return 0, err
	}
	if next > math.MaxUint32 {
		return 0, store.ErrTooManyRows
	}
	return uint32(next - int64(n)), nil
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

// queueRemoval removes the content that a generation has of a document.
func queueRemoval(batch *pgx.Batch, generation, ordinal uint32) {
	batch.Queue(`delete from codes using documents d where d.collection = $1 and d.ordinal = $2 and d.coded
		and codes.collection = $1 and "row" >= d.first_row and "row" < d.first_row + d.rows`, generation, ordinal)
	batch.Queue("delete from contents where collection = $1 and ordinal = $2", generation, ordinal)
}

const putDocument = `insert into documents (` + recordColumns + `)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
	on conflict (collection, ordinal) do update set version = excluded.version, title = excluded.title, format = excluded.format,
	chunker = excluded.chunker, model = excluded.model, identity = excluded.identity, first_row = excluded.first_row,
	rows = excluded.rows, coded = excluded.coded, access = excluded.access, epoch = excluded.epoch, updated = excluded.updated,
	class = excluded.class`

// put writes changed records of one document with the change.
func (t *txn) put(collection uint32, records []store.Record) ([]store.Record, error) {
	epoch, err := t.change(store.DocumentChanged, collection, records[0].Ordinal)
	if err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	for i := range records {
		records[i].Epoch = epoch
		batch.Queue(putDocument, values(records[i])...)
	}
	return records, t.tx.SendBatch(t.ctx, batch).Close()
}

// Delete removes a document.
func (s *Store) Delete(ctx context.Context, collection uint32, key string) (store.Receipt, error) {
	return s.receipt(ctx, func(t *txn) (store.Receipt, error) { return t.delete(collection, key) })
}

func (t *txn) delete(collection uint32, key string) (store.Receipt, error) {
	live, err := t.live(collection)
	if err != nil {
		return store.Receipt{}, err
	}
	r, err := t.lookup(live[0].ID, key)
	if err != nil {
		return store.Receipt{}, err
	}
	batch := &pgx.Batch{}
	for _, g := range live {
		queueRemoval(batch, g.ID, r.Ordinal)
		batch.Queue("delete from documents where collection = $1 and ordinal = $2", g.ID, r.Ordinal)
	}
	if err := t.tx.SendBatch(t.ctx, batch).Close(); err != nil {
		return store.Receipt{}, err
	}
	r.Epoch, err = t.change(store.DocumentChanged, collection, r.Ordinal)
	return store.Receipt{Record: r}, err
}
