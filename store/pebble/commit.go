package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"sluice/filter"
	"sluice/store"
	"sluice/store/encode"
)

// write is one write on its way: plan puts it into a batch, done gets its outcome.
type write struct {
	ctx     context.Context
	plan    func(*txn) error
	txn     *txn
	applied bool // there was something to apply; the batch itself does not say so for long
	err     error
	done    chan error
}

// state is what the committer knows of the counters.
type state struct {
	meta     meta
	counters map[uint32]counters // of the collections written to so far
}

// txn is the batch of one write with the counters as they are after it.
type txn struct {
	store      *Store
	batch      *pebble.Batch
	meta       meta
	collection uint32 // whose counters change; 0: none
	counters   counters
}

// submit has a write planned and applied, and returns when it is durable, or,
// if it changes nothing, when all that it saw is durable.
func (s *Store) submit(ctx context.Context, plan func(*txn) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.use.RUnlock()
	if s.readOnly {
		return store.ErrReadOnly
	}
	w := &write{ctx: ctx, plan: plan, done: make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.guard.failed:
		return s.guard.failure()
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the write may still happen: %w", ctx.Err())
	case <-s.guard.failed:
		return s.guard.failure()
	}
}

// commitWrites is the committer. The order in which it applies is the order of the epochs.
func (s *Store) commitWrites() {
	defer close(s.applied)
	for w := range s.writes {
		w.txn = &txn{store: s, batch: s.db.NewBatch(), meta: s.state.meta}
		if w.err = w.ctx.Err(); w.err == nil {
			w.err = w.plan(w.txn)
		}
		if w.applied = w.err == nil && !w.txn.batch.Empty(); w.applied {
			s.apply(w.txn)
		}
		s.applied <- w
	}
}

// apply puts the batch into the log and the memtable. The counters advance with it.
func (s *Store) apply(t *txn) {
	if err := s.db.ApplyNoSyncWait(t.batch, pebble.Sync); err != nil {
		s.guard.fail(err)
	}
	s.state.meta = t.meta
	if t.collection != 0 {
		s.state.counters[t.collection] = t.counters
	}
}

// syncWrites is the syncer.
func (s *Store) syncWrites() {
	for w := range s.applied {
		if w.applied {
			if err := w.txn.batch.SyncWait(); err != nil {
				s.guard.fail(err)
			}
			s.feed.advance(w.txn.meta.epoch)
		}
		w.done <- errors.Join(w.err, w.txn.batch.Close())
	}
}

func (t *txn) set(key []byte, body ...[]byte) error {
	return t.batch.Set(key, seal(key, body...), nil)
}

func (t *txn) setMeta() error { return t.set(metaKey(), t.meta.encode()) }

// change takes the next epoch and puts the change into the feed.
func (t *txn) change(kind store.ChangeKind, collection, ordinal uint32) (epoch uint64, err error) {
	t.meta.epoch++
	c := store.Change{Epoch: t.meta.epoch, Kind: kind, Collection: collection, Ordinal: ordinal}
	return c.Epoch, errors.Join(t.set(feedKey(c.Epoch), encodeChange(c)), t.setMeta())
}

// use loads the counters of a collection.
func (t *txn) use(collection uint32) (err error) {
	known := false
	if t.counters, known = t.store.state.counters[collection]; !known {
		t.counters, err = readCounters(t.store.db, collection)
	}
	t.collection = collection
	return err
}

// take returns the first of n new numbers.
func take(next *uint64, n int) (uint32, error) {
	first := *next
	if first+uint64(n) > math.MaxUint32 {
		return 0, store.ErrTooManyRows
	}
	*next += uint64(n)
	return uint32(first), nil
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

// receipt submits a write that gives a receipt.
func (s *Store) receipt(ctx context.Context, plan func(*txn) (store.Receipt, error)) (store.Receipt, error) {
	var r store.Receipt
	err := s.submit(ctx, func(t *txn) (err error) {
		r, err = plan(t)
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
	if err := t.use(collection); err != nil {
		return store.Receipt{}, err
	}
	old, err := lookup(t.store.db, collection, v.Key)
	created := errors.Is(err, store.ErrNotFound)
	if err == nil {
		v.Access = v.Access.Keeping(v.Keeps, old.Access)
	}
	switch {
	case err == nil && old.Identity == v.Identity && old.Chunker == v.Chunker && old.Model == v.Model:
		return t.replaceAccess(old, v.Access)
	case v.Vectors == nil && len(v.Chunks) > 0:
		return store.Receipt{}, store.ErrVectorsNeeded
	case created:
		old, err = t.create(collection, v.Key)
	}
	if err != nil {
		return store.Receipt{}, err
	}
	r, err := t.replace(old, v)
	return store.Receipt{Record: r, Created: created}, err
}

// create takes an ordinal for a new key.
func (t *txn) create(collection uint32, key string) (store.Record, error) {
	ordinal, err := take(&t.counters.ordinal, 1)
	if err != nil {
		return store.Record{}, err
	}
	return store.Record{Collection: collection, Key: key, Ordinal: ordinal}, t.set(documentKey(collection, key), encodeNumber(ordinal))
}

// replace writes the version in place of old.
func (t *txn) replace(old store.Record, v prepared) (store.Record, error) {
	r := old
	r.Title, r.Format, r.Chunker, r.Model, r.Access = v.Title, v.Format, v.Chunker, v.Model, v.Access
	if r.Version == 0 || r.Identity != v.Identity {
		r.Version++
	}
	r.Identity = v.Identity
	first, err := take(&t.counters.row, len(v.Chunks))
	if err != nil {
		return store.Record{}, err
	}
	r.FirstRow, r.Rows, r.Coded = first, uint32(len(v.Chunks)), v.Codes != nil
	w := writtenBy(r).encode()
	content := ordinalKey(tagContent, r.Collection, r.Ordinal)
	vectors := ordinalKey(tagVectors, r.Collection, r.Ordinal)
	err = errors.Join(
		t.set(countersKey(r.Collection), t.counters.encode()),
		t.set(content, w, v.text),
		t.set(vectors, w, v.vectors),
		t.deleteCodes(old),
		t.setCodes(r, v.Codes),
	)
	if err != nil {
		return store.Record{}, err
	}
	return t.put(r)
}

// setCodes writes the token codes of r's rows. A row is never used again, so
// the key alone says of which writing they are.
func (t *txn) setCodes(r store.Record, codes [][]byte) (err error) {
	for i, row := range codes {
		err = errors.Join(err, t.set(ordinalKey(tagCodes, r.Collection, r.FirstRow+uint32(i)), row))
	}
	return err
}

func (t *txn) deleteCodes(r store.Record) (err error) {
	for i := range r.Rows {
		if r.Coded {
			err = errors.Join(err, t.batch.Delete(ordinalKey(tagCodes, r.Collection, r.FirstRow+i), nil))
		}
	}
	return err
}

// put writes a changed record with its change.
func (t *txn) put(r store.Record) (store.Record, error) {
	epoch, err := t.change(store.DocumentChanged, r.Collection, r.Ordinal)
	if err != nil {
		return store.Record{}, err
	}
	r.Epoch, r.Updated = epoch, now()
	return r, t.set(ordinalKey(tagRecord, r.Collection, r.Ordinal), encodeRecord(r))
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

// SetAccess replaces the access row. change runs here, not in the committer,
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
	r, err := lookup(t.store.db, old.Collection, old.Key)
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
	r, err := lookup(t.store.db, collection, key)
	if err != nil {
		return store.Receipt{}, err
	}
	err = errors.Join(t.batch.Delete(documentKey(collection, key), nil), t.deleteCodes(r))
	for _, tag := range []byte{tagRecord, tagContent, tagVectors} {
		err = errors.Join(err, t.batch.Delete(ordinalKey(tag, collection, r.Ordinal), nil))
	}
	epoch, changeErr := t.change(store.DocumentChanged, collection, r.Ordinal)
	r.Epoch = epoch
	return store.Receipt{Record: r}, errors.Join(err, changeErr)
}
