package pebble

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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
	store   *Store
	batch   *pebble.Batch
	meta    meta
	used    map[uint32]*counters // of the generations that the write looked at
	dropped []uint32             // generations that it removes
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
		w.txn = &txn{store: s, batch: s.db.NewBatch(), meta: s.state.meta, used: map[uint32]*counters{}}
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
	s.records.write(t.batch, func() {
		if err := s.db.ApplyNoSyncWait(t.batch, pebble.Sync); err != nil {
			s.guard.fail(err)
		}
	})
	s.state.meta = t.meta
	for id, c := range t.used {
		s.state.counters[id] = *c
	}
	for _, id := range t.dropped {
		delete(s.state.counters, id)
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

// counters returns those of a generation, to be changed by the write.
func (t *txn) counters(generation uint32) (*counters, error) {
	if c, used := t.used[generation]; used {
		return c, nil
	}
	c, known := t.store.state.counters[generation]
	if !known {
		var err error
		if c, err = readCounters(t.store.db, generation); err != nil {
			return nil, err
		}
	}
	t.used[generation] = &c
	return &c, nil
}

// number takes n new numbers of those that counter picks, and returns the first.
func (t *txn) number(generation uint32, n int, counter func(*counters) *uint64) (uint32, error) {
	c, err := t.counters(generation)
	if err != nil {
		return 0, err
	}
	first, err := take(counter(c), n)
	return first, errors.Join(err, t.set(countersKey(generation), c.encode()))
}

func ordinals(c *counters) *uint64 { return &c.ordinal }
func rows(c *counters) *uint64     { return &c.row }

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
	p := prepared{Version: v, encoded: s.encode(v.Text, v.Build())}
	for _, b := range v.Builds {
		p.builds = append(p.builds, s.encode(v.Text, b))
	}
	if v.Parsed != nil {
		p.parsed = s.codec.Deflate(v.Parsed)
	}
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
	if err != nil {
		return store.Receipt{}, err
	}
	if err := v.CheckFor(collection, live); err != nil {
		return store.Receipt{}, err
	}
	old, err := lookup(t.store.db, live[0].ID, v.Key)
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
		old.Ordinal, err = t.number(collection, 1, ordinals)
	}
	if err != nil {
		return store.Receipt{}, err
	}
	r, err := t.commitAll(collection, live, old, v)
	return store.Receipt{Record: r, Created: created}, err
}

// commitAll writes the version into every generation, in place of old in the
// serving one, and returns the record there.
func (t *txn) commitAll(collection uint32, live []store.Generation, old store.Record, v prepared) (serving store.Record, err error) {
	r := old
	r.Title, r.Format, r.Access = v.Title, v.Format, v.Access
	if r.Version == 0 || r.Identity != v.Identity {
		r.Version++
	}
	r.Identity, r.Updated = v.Identity, now()
	if r.Epoch, err = t.change(store.DocumentChanged, collection, r.Ordinal); err != nil {
		return r, err
	}
	if serving, err = t.replace(old, r, v.encoded, v.parsed); err != nil {
		return r, err
	}
	for _, g := range live[1:] {
		i, err := v.BuildFor(g)
		if err != nil {
			return r, err
		}
		its, err := readRecord(t.store.db, g.ID, r.Ordinal)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return r, err
		}
		if _, err := t.replace(its, r, v.builds[i], v.parsed); err != nil {
			return r, err
		}
	}
	return serving, nil
}

// replace writes a document's record and content into the build's generation, in
// place of old, which is empty where it is new there.
func (t *txn) replace(old, r store.Record, b encoded, parsed []byte) (store.Record, error) {
	if b.Generation != 0 {
		r.Collection = b.Generation
	}
	r.Chunker, r.Model = b.Chunker, b.Model
	first, err := t.number(r.Collection, len(b.Chunks), rows)
	if err != nil {
		return store.Record{}, err
	}
	r.FirstRow, r.Rows, r.Coded = first, uint32(len(b.Chunks)), b.Codes != nil
	w := writtenBy(r).encode()
	err = errors.Join(
		t.set(documentKey(r.Collection, r.Key), encodeNumber(r.Ordinal)),
		t.set(ordinalKey(tagContent, r.Collection, r.Ordinal), w, b.text),
		t.set(ordinalKey(tagVectors, r.Collection, r.Ordinal), w, b.vectors),
		t.setParsed(r, parsed),
		t.deleteCodes(old),
		t.setCodes(r, b.Codes),
		t.setRecord(r),
	)
	return r, err
}

func (t *txn) setParsed(r store.Record, parsed []byte) error {
	key := ordinalKey(tagParsed, r.Collection, r.Ordinal)
	if parsed == nil {
		return t.batch.Delete(key, nil)
	}
	return t.set(key, parsed)
}

func (t *txn) setRecord(r store.Record) error {
	return t.set(ordinalKey(tagRecord, r.Collection, r.Ordinal), encodeRecord(r))
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

// replaceAccess writes a normal access row into every generation, unless it is
// the present one of r, the serving one's record.
func (t *txn) replaceAccess(collection uint32, live []store.Generation, r store.Record, access filter.Access) (store.Receipt, error) {
	if encode.SameAccess(r.Access, access) {
		return store.Receipt{Record: r, Unchanged: true}, nil
	}
	epoch, err := t.change(store.DocumentChanged, collection, r.Ordinal)
	if err != nil {
		return store.Receipt{}, err
	}
	r.Access, r.Epoch, r.Updated = access, epoch, now()
	err = t.eachOf(live, r.Key, func(its store.Record) error {
		its.Access, its.Epoch, its.Updated = r.Access, r.Epoch, r.Updated
		return t.setRecord(its)
	})
	return store.Receipt{Record: r, AccessOnly: true}, err
}

// errConflict: the document changed between the read and the write.
var errConflict = errors.New("the document changed meanwhile")

// SetAccess replaces the access row. change runs here, not in the committer,
// which only makes sure that the row is still the one that change was given.
func (s *Store) SetAccess(ctx context.Context, collection uint32, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error) {
	for {
		c, err := s.collectionByID(ctx, collection)
		if err != nil {
			return store.Receipt{}, err
		}
		old, err := s.Lookup(ctx, c.Serving().ID, key)
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
		receipt, err := s.receipt(ctx, func(t *txn) (store.Receipt, error) { return t.setAccess(collection, old, access) })
		if !errors.Is(err, errConflict) {
			return receipt, err
		}
	}
}

func (t *txn) setAccess(collection uint32, old store.Record, access filter.Access) (store.Receipt, error) {
	live, err := t.live(collection)
	if err != nil {
		return store.Receipt{}, err
	}
	r, err := lookup(t.store.db, live[0].ID, old.Key)
	if err != nil {
		return store.Receipt{}, err
	}
	if r.Epoch != old.Epoch || r.Collection != old.Collection {
		return store.Receipt{}, errConflict
	}
	return t.replaceAccess(collection, live, r, access)
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
	r, err := lookup(t.store.db, live[0].ID, key)
	if err != nil {
		return store.Receipt{}, err
	}
	r.Epoch, err = t.change(store.DocumentChanged, collection, r.Ordinal)
	return store.Receipt{Record: r}, errors.Join(err, t.eachOf(live, key, t.remove))
}

// remove removes a document from one generation.
func (t *txn) remove(r store.Record) error {
	err := errors.Join(t.batch.Delete(documentKey(r.Collection, r.Key), nil), t.deleteCodes(r))
	for _, tag := range tagsOfDocument {
		err = errors.Join(err, t.batch.Delete(ordinalKey(tag, r.Collection, r.Ordinal), nil))
	}
	return err
}
