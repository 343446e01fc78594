package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"sluice/chunk"
	"sluice/filter"
	"sluice/filter/lru"
	"sluice/index"
	"sluice/store"
)

const (
	changesPerStep  = 1024  // feed entries applied and published together
	epochsPerFlush  = 10000 // epochs between two durable checkpoints of the indexes
	rebuildDocBatch = 256   // documents read from the store at a time when rebuilding
)

// Errors of waits.
var (
	ErrStopped = errors.New("serving has stopped")
	ErrBehind  = errors.New("the write is stored but not searchable yet")
)

// ErrOtherModel says that what is stored cannot be searched with this embedder.
var ErrOtherModel = errors.New("documents were embedded by another model or precision; start with the settings model and precision they were written with, or ingest them into an empty data directory")

// OpenIndex opens the index of a generation of a collection, whose number is in
// the place of the collection's (store.Collection.At). It returns an empty one
// (Applied 0) where what was there cannot be used, or is not wanted (fresh).
type OpenIndex func(c store.Collection, fresh bool) (index.Index, error)

// Serving is the state searches run on: per collection a filter.View and, per
// generation, an index, brought forward from the store's change feed by one goroutine and
// published together, so that a search sees one epoch of both.
type Serving struct {
	store store.Store
	model string
	open  OpenIndex
	cores int
	log   *slog.Logger

	stop context.CancelFunc
	done chan struct{}

	epochsPerFlush uint64
	gate           *gate  // nil: nobody else writes the store
	retained       uint64 // epochs of the feed that others may still need

	mu          sync.Mutex
	collections map[uint32]*collection
	names       map[name]*collection
	policies    *filter.Policies
	lookups     lru.Lookups // of principals' Sets, in all collections
	applied     uint64
	flushed     uint64
	reading     map[uint32]int // snapshots of each generation that are not released
	failure     error          // why the last step failed; nil when it did not
	moved       chan struct{}  // closed and replaced whenever the above change
}

type name struct{ tenant, collection string }

// collection is changed by the follower only, and by it under Serving.mu.
type collection struct {
	store.Collection
	indexes map[uint32]index.Index // by generation
	current *snapshot              // guarded by Serving.mu
}

// index is that of the serving generation.
func (c *collection) index() index.Index { return c.indexes[c.Serving().ID] }

// NewServing opens every collection, catches up with the store and follows it
// until Close.
//
// model is the digest of the embedder: documents embedded by another are
// ErrOtherModel, since no query vector could be compared with theirs.
func NewServing(ctx context.Context, st store.Store, model string, open OpenIndex, log *slog.Logger, options ...Option) (*Serving, error) {
	return newServing(ctx, st, model, open, log, epochsPerFlush, options...)
}

// Option changes how a Serving serves.
type Option func(*Serving)

// Cores is how many cores decide about access where that takes long; without it
// those that the runtime uses.
func Cores(n int) Option { return func(s *Serving) { s.cores = n } }

func newServing(ctx context.Context, st store.Store, model string, open OpenIndex, log *slog.Logger, epochsPerFlush uint64, options ...Option) (*Serving, error) {
	s := &Serving{
		store: st, model: model, open: open, cores: runtime.GOMAXPROCS(0), log: log, epochsPerFlush: epochsPerFlush,
		collections: map[uint32]*collection{}, names: map[name]*collection{}, reading: map[uint32]int{},
		done: make(chan struct{}), moved: make(chan struct{}),
	}
	for _, option := range options {
		option(s)
	}
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(err, s.closeIndexes())
	}
	following, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.follow(following)
	return s, nil
}

// load brings everything to the store's present epoch, before any search.
func (s *Serving) load(ctx context.Context) error {
	epoch, err := s.store.Epoch(ctx)
	if err != nil {
		return err
	}
	if err := s.loadPolicies(ctx); err != nil {
		return err
	}
	if err := s.openCollections(ctx, epoch); err != nil {
		return err
	}
	s.applied, s.flushed = epoch, epoch
	return nil
}

func (s *Serving) loadPolicies(ctx context.Context) error {
	source, err := s.store.Policies(ctx)
	if err != nil {
		return fmt.Errorf("reading policies: %w", err)
	}
	policies, err := filter.ParsePolicies(source.Schema, source.Policies)
	if err != nil {
		return fmt.Errorf("the stored policies: %w", err)
	}
	s.mu.Lock()
	s.policies = policies
	s.mu.Unlock()
	return nil
}

// openCollections opens those that are in the store and not yet here.
func (s *Serving) openCollections(ctx context.Context, epoch uint64) error {
	all, err := s.store.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if _, known := s.collections[c.ID]; known {
			continue
		}
		if err := s.openCollection(ctx, c, epoch); err != nil {
			return fmt.Errorf("collection %s: %w", c.Name, err)
		}
	}
	return nil
}

func (s *Serving) openCollection(ctx context.Context, c store.Collection, epoch uint64) error {
	view, err := s.buildView(ctx, c)
	if err != nil {
		return err
	}
	now, err := s.store.Collection(ctx, c.Tenant, c.Name)
	if err != nil {
		return err
	}
	if !live(now, c.Serving().ID) { // dropped while others were opened: the view lacks documents
		return s.openCollection(ctx, now, epoch)
	}
	opened := &collection{Collection: c, indexes: map[uint32]index.Index{}}
	if err := s.openGenerations(ctx, opened, c.Live(), epoch); err != nil {
		return err
	}
	reader, err := opened.index().Reader()
	if err != nil {
		return errors.Join(err, opened.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opened.current = s.newSnapshot(c.At(c.Serving()), view, opened.index(), reader)
	s.collections[c.ID], s.names[name{c.Tenant, c.Name}] = opened, opened
	return nil
}

// openGenerations opens the indexes of those that have none yet.
func (s *Serving) openGenerations(ctx context.Context, c *collection, live []store.Generation, epoch uint64) error {
	for _, g := range live {
		if c.indexes[g.ID] != nil {
			continue
		}
		ix, err := s.openIndex(ctx, c.Collection, g, epoch)
		if err != nil {
			return err
		}
		s.mu.Lock()
		c.indexes[g.ID] = ix
		s.mu.Unlock()
	}
	return nil
}

func (c *collection) close() (err error) {
	for _, ix := range c.indexes {
		err = errors.Join(err, ix.Close())
	}
	return err
}

// openIndex returns a generation's index at epoch: brought there by the feed
// where it reaches back far enough, else built from the documents themselves.
func (s *Serving) openIndex(ctx context.Context, c store.Collection, g store.Generation, epoch uint64) (index.Index, error) {
	ix, err := s.open(c.At(g), false)
	if err != nil {
		return nil, err
	}
	if ix.Applied() > 0 {
		err = s.replay(ctx, c, g, ix, epoch)
	}
	if errors.Is(err, store.ErrFeedTrimmed) || errors.Is(err, errAhead) {
		s.log.Warn("the index does not follow the store and is rebuilt", "collection", c.Name, "reason", err)
		if err = ix.Close(); err == nil {
			ix, err = s.open(c.At(g), true)
		}
		if err != nil {
			return nil, err
		}
	}
	if err == nil && ix.Applied() == 0 {
		err = s.rebuild(ctx, c.At(g), ix, epoch)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bringing the index to epoch %d: %w", epoch, err), ix.Close())
	}
	return ix, nil
}

func (s *Serving) buildView(ctx context.Context, c store.Collection) (*filter.View, error) {
	var changes []filter.Change
	for record, err := range s.store.Scan(ctx, c.Serving().ID, 0) {
		if err != nil {
			return nil, fmt.Errorf("reading access rows: %w", err)
		}
		if record.Model != c.Settings.Model(s.model) {
			return nil, fmt.Errorf("%w: document %q", ErrOtherModel, record.Key)
		}
		changes = append(changes, filter.Change{Ordinal: record.Ordinal, Access: record.Access})
	}
	return filter.NewView(c.Tenant, s.policies).DecidedOn(s.cores).CountedBy(&s.lookups).Apply(changes), nil
}

// errAhead: the index has seen more than the store has. The store was restored
// from a backup, so what the index holds is not to be trusted.
var errAhead = errors.New("the index is ahead of the store")

func (s *Serving) replay(ctx context.Context, c store.Collection, g store.Generation, ix index.Index, epoch uint64) error {
	if ix.Applied() > epoch {
		return errAhead
	}
	after := ix.Applied()
	for after < epoch {
		changes, err := s.store.Changes(ctx, after, changesPerStep)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			break
		}
		after = changes[len(changes)-1].Epoch
		if err := s.applyToIndex(ctx, ix, g.ID, touchedOf(changes, c.ID), after); err != nil {
			return err
		}
	}
	return ix.Apply(ctx, index.Batch{Epoch: max(after, epoch)})
}

// rebuild puts every document of the store into an empty index. Epoch 0 marks
// the parts: a crash before the last batch leaves an index to rebuild again.
func (s *Serving) rebuild(ctx context.Context, c store.Collection, ix index.Index, epoch uint64) error {
	var ordinals []uint32
	for record, err := range s.store.Scan(ctx, c.ID, 0) {
		if err != nil {
			return err
		}
		ordinals = append(ordinals, record.Ordinal)
	}
	if len(ordinals) > 0 {
		s.log.Info("rebuilding the index from the store", "collection", c.Name, "documents", len(ordinals))
	}
	for part := range slices.Chunk(ordinals, rebuildDocBatch) {
		if err := s.applyToIndex(ctx, ix, c.ID, allOf(part, false), 0); err != nil {
			return err
		}
	}
	if err := ix.Apply(ctx, index.Batch{Epoch: epoch}); err != nil {
		return err
	}
	return ix.Flush(ctx)
}

// states is what a set of documents is at present in the store: what the index
// lacks of them, and their access rows. Text and access of one document come
// from one read, so neither is ever published with another version's other.
type states struct {
	batch   index.Batch
	changes []filter.Change
}

func (s *Serving) read(ctx context.Context, ix index.Index, generation uint32, documents touched, epoch uint64) (states, error) {
	ordinals := slices.Sorted(maps.Keys(documents))
	records, err := s.store.Records(ctx, generation, ordinals)
	if err != nil {
		return states{}, fmt.Errorf("reading records: %w", err)
	}
	out := states{batch: index.Batch{Epoch: epoch}}
	for _, ordinal := range ordinals {
		record, exists := records[ordinal]
		if exists && !ix.Holds(ordinal, record.FirstRow) {
			content, err := s.store.Content(ctx, generation, ordinal, true)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return states{}, fmt.Errorf("reading document %d: %w", ordinal, err)
			}
			if exists = err == nil; exists {
				record = content.Record
				d := Indexed(content)
				d.Elsewhere = documents[ordinal]
				out.batch.Put = append(out.batch.Put, d)
			}
		}
		if !exists {
			out.batch.Delete = append(out.batch.Delete, ordinal)
		}
		out.changes = append(out.changes, filter.Change{Ordinal: ordinal, Deleted: !exists, Access: record.Access})
	}
	return out, nil
}

// applyToIndex brings the documents to their present state in the store.
func (s *Serving) applyToIndex(ctx context.Context, ix index.Index, generation uint32, documents touched, epoch uint64) error {
	now, err := s.read(ctx, ix, generation, documents, epoch)
	if err != nil {
		return err
	}
	return ix.Apply(ctx, now.batch)
}

// Indexed is a document as its index is to hold it.
func Indexed(c store.Content) index.Document {
	d := index.Document{Ordinal: c.Ordinal, Class: cmp.Or(c.Class, c.Access.Class()), Rows: make([]index.Row, len(c.Chunks))}
	for i, piece := range c.Chunks {
		d.Rows[i] = index.Row{
			Row:     c.FirstRow + uint32(i),
			Title:   titleBeside(piece.Headings, c.Title),
			Heading: strings.Join(piece.Headings, "\n"),
			Text:    chunk.IndexText(c.Text, piece),
			Vector:  c.Vectors[i*c.Dimensions : (i+1)*c.Dimensions],
		}
	}
	return d
}

// titleBeside is the title where the heading path does not have it already, as
// it mostly does: found once, it should count once.
func titleBeside(headings []string, title string) string {
	if slices.Contains(headings, title) {
		return ""
	}
	return title
}

// touched are ordinals of documents that may have changed; true: through
// another daemon, the last time.
type touched map[uint32]bool

func touchedOf(changes []store.Change, collection uint32) touched {
	documents := touched{}
	for _, c := range changes {
		if c.Kind == store.DocumentChanged && c.Collection == collection {
			documents[c.Ordinal] = c.Elsewhere
		}
	}
	return documents
}

func allOf(ordinals []uint32, elsewhere bool) touched {
	documents := make(touched, len(ordinals))
	for _, ordinal := range ordinals {
		documents[ordinal] = elsewhere
	}
	return documents
}
