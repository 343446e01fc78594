// Package milvus keeps the vectors of an index on Milvus servers. What is found
// there counts as far as the embedded index beside it says so: that has the
// postings, and knows every live row. A row is written once and never changed;
// rows that a server has beyond the live ones are left out of every answer, and
// swept away when nobody can ask for them any more.
package milvus

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"sluice/index"
	"sluice/index/local"
	"sluice/index/text"
)

// Options say what an index holds, and where.
type Options struct {
	Name       string // of the collections; letters, digits and _
	Dir        string // of the embedded index
	Dimensions int
	Analyzer   text.Analyzer
	Model      string // digest of what made the vectors; only compared
	Partial    bool   // searches go on without clusters that fail
	// Shared: other daemons have the index of this name too, on the same clusters
	// and of the same store, and may search for so long what a batch has replaced.
	// Then rows are as their documents say, whoever writes them, the collections
	// outlive an index that is to be filled again, and replaced rows go later. 0: none have.
	Shared time.Duration
	Epoch  func(context.Context) (uint64, error) // of the store at present; of a shared index
	Owner  string                                // what the collections say that they are of
	Log    *slog.Logger                          // background work that failed and is tried again; nil: slog.Default()
}

const maxDimensions = 32768 // the server's

func (o Options) check() error {
	if o.Dimensions < 2 || o.Dimensions > maxDimensions {
		return fmt.Errorf("%d dimensions, 2 to %d are possible: %w", o.Dimensions, maxDimensions, index.ErrInvalid)
	}
	return nil
}

// Index implements index.Index.
type Index struct {
	options  Options
	postings *local.Index
	shards   []*shard
	owners   *owners

	writing chan struct{} // held by whoever changes the index; guards epoch and the shards
	epoch   uint64
	lacks   []uint32 // documents of which rows were not there when it was opened
	stale   bool     // an Apply has failed: rows may be on the servers that nobody knows of

	mu      sync.Mutex // guards the next fields
	current *state     // nil: closed
	open    map[uint64]bool
	garbage []garbage

	wake chan struct{} // there may be something to sweep
	stop context.CancelFunc
	done chan struct{} // the sweeping goroutine has ended
}

// shard is what one cluster has.
type shard struct {
	*collection
	classes   classes
	classOf   map[uint32]int64  // by ordinal, of documents of one class
	unclaimed map[uint32]stored // rows that belong to no live document, yet
}

var (
	_ index.Index   = (*Index)(nil)
	_ index.Dropper = (*Index)(nil)
)

// Open opens the index, or creates it. Documents are spread over the clusters by
// rendezvous hash of their ordinal.
//
// index.ErrRebuild: it is damaged, was made with another model, analyzer or other
// dimensions, or a cluster lacks rows; Remove it and fill it from the store. Rows
// of a shared index may be missing because another daemon swept them away after
// they were replaced: see Lacks.
func Open(ctx context.Context, clusters []*Cluster, options Options) (*Index, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	postings, err := local.Open(options.Dir, local.Options{
		Analyzer: options.Analyzer, Model: fmt.Sprintf("%s/%d", options.Model, options.Dimensions), Log: options.Log,
	})
	if err != nil {
		return nil, err
	}
	ix := &Index{
		options: options, postings: postings, owners: newOwners(), epoch: postings.Applied(),
		writing: make(chan struct{}, 1), open: map[uint64]bool{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	for _, c := range collections(clusters, options) {
		ix.shards = append(ix.shards, &shard{collection: c, classes: noClasses(), classOf: map[uint32]int64{}, unclaimed: map[uint32]stored{}})
	}
	if err := ix.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening index %s: %w", options.Name, err), postings.Close())
	}
	sweeping, stop := context.WithCancel(context.Background())
	ix.stop = stop
	go ix.sweepLoop(sweeping)
	ix.wakeSweeper()
	return ix, nil
}

// collections are those of an index. Of several clusters each has its own name
// for its part, in case two are the same under two addresses.
func collections(clusters []*Cluster, o Options) (all []*collection) {
	for _, c := range clusters {
		name := o.Name
		if len(clusters) > 1 {
			name = fmt.Sprintf("%s_%08x", name, crc32.ChecksumIEEE([]byte(c.address)))
		}
		all = append(all, &collection{Cluster: c, name: name, dims: o.Dimensions, owner: o.Owner})
	}
	return all
}

// CollectionNames are those of an index on each of the clusters.
func CollectionNames(clusters []*Cluster, o Options) (names []string) {
	for _, c := range collections(clusters, o) {
		names = append(names, c.name)
	}
	return names
}

// Lacks returns the documents of a shared index that were not whole when it was
// opened. If the store still has them as they are here, rows were lost: the index
// is to be removed and filled again. Else the feed brings their successors.
func (ix *Index) Lacks() []uint32 { return ix.lacks }

// Forget removes the directory of an index, so that it is opened empty, and leaves
// the clusters to other daemons.
func Forget(options Options) error {
	if err := os.RemoveAll(options.Dir); err != nil {
		return fmt.Errorf("removing index %s: %w", options.Name, err)
	}
	return nil
}

// Remove removes the index of that name from the clusters, and its directory.
func Remove(ctx context.Context, clusters []*Cluster, options Options) error {
	// The directory goes last: it tells that there may be collections.
	for _, c := range collections(clusters, options) {
		if err := c.Drop(ctx, c.name); err != nil {
			return fmt.Errorf("removing index %s: %w", options.Name, err)
		}
	}
	return Forget(options)
}

// load compares what the clusters have with what is live.
func (ix *Index) load(ctx context.Context) error {
	snapshot, err := ix.postings.Snapshot()
	if err != nil {
		return err
	}
	if err := ix.loadShards(ctx, snapshot); err != nil {
		snapshot.Close()
		return err
	}
	ix.publish(snapshot)
	return nil
}

// loadShards finds out what the clusters have of the live documents, and lack.
func (ix *Index) loadShards(ctx context.Context, live *local.Reader) error {
	missing, err := ix.claimAll(live)
	if err != nil {
		return err
	}
	for i, s := range ix.shards {
		if err := ix.loadShard(ctx, i, s, live, missing); err != nil {
			return err
		}
	}
	if !missing.IsEmpty() && ix.options.Shared == 0 {
		return fmt.Errorf("the servers lack %d rows: %w", missing.GetCardinality(), index.ErrRebuild)
	}
	ix.lacks = ix.ordinalsOf(missing)
	return ix.suspect(ctx)
}

// claimAll notes whose every live row is, and returns the rows.
func (ix *Index) claimAll(live *local.Reader) (rows *roaring.Bitmap, err error) {
	var claimed []claim
	rows = roaring.New()
	err = live.AllDocuments(func(ordinal uint32, of []uint32) bool {
		for _, row := range of {
			claimed = append(claimed, claim{row, ordinal})
		}
		rows.AddMany(of)
		return true
	})
	ix.owners.set(claimed)
	return rows, err
}

// suspect has the rows of a shared index that were found and are of no live
// document deleted if they still are when the index has reached the store's present
// epoch. Their own epochs do not tell: a daemon that lags behind writes what
// documents have become since.
func (ix *Index) suspect(ctx context.Context) error {
	if ix.options.Shared == 0 {
		return nil
	}
	epoch, err := ix.options.Epoch(ctx)
	if err != nil {
		return fmt.Errorf("asking for the store's epoch: %w", err)
	}
	for i, s := range ix.shards {
		ix.discard(garbage{epoch: epoch, shard: i, rows: slices.Sorted(maps.Keys(s.unclaimed))})
	}
	return nil
}

func (ix *Index) ordinalsOf(rows *roaring.Bitmap) (ordinals []uint32) {
	for _, row := range rows.ToArray() {
		ordinal, _ := ix.owners.of(row)
		ordinals = append(ordinals, ordinal)
	}
	slices.Sort(ordinals)
	return slices.Compact(ordinals)
}

// loadShard takes the live rows that the cluster has out of missing.
func (ix *Index) loadShard(ctx context.Context, i int, s *shard, live *local.Reader, missing *roaring.Bitmap) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	mixed := map[uint32]bool{} // documents of rows under several classes
	var dead []uint32
	err := s.scan(ctx, 0, 1<<32, func(r stored) {
		owner, known := ix.owners.of(r.row)
		switch {
		case known && owner == r.ordinal && ix.shardOf(r.ordinal) == i && live.Holds(index.Hit{Row: r.row, Ordinal: r.ordinal}):
			missing.Remove(r.row)
			class, put := s.classOf[r.ordinal]
			mixed[r.ordinal] = mixed[r.ordinal] || put && class != r.class
			s.classOf[r.ordinal] = r.class
		case ix.options.Shared == 0 && r.epoch > 0 && uint64(r.epoch) <= ix.epoch:
			dead = append(dead, r.row)
		default:
			s.unclaimed[r.row] = r
		}
	})
	s.classify(mixed)
	ix.discard(garbage{shard: i, rows: dead})
	return err
}

// classify makes the classes of what classOf says, without the mixed.
func (s *shard) classify(mixed map[uint32]bool) {
	edit := s.classes.edit()
	for ordinal, class := range s.classOf {
		if edit.all.Add(ordinal); mixed[ordinal] {
			delete(s.classOf, ordinal)
		} else {
			edit.put(ordinal, class)
		}
	}
	s.classes = edit.classes
}

// lock waits for its turn to change the index.
func (ix *Index) lock(ctx context.Context) error {
	select {
	case ix.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if ix.current == nil { // only Close, which holds the lock, makes it so
		ix.unlock()
		return index.ErrClosed
	}
	return nil
}

func (ix *Index) unlock() { <-ix.writing }

// Apply writes the batch's rows to the clusters, makes sure that they are there
// and then makes the batch visible. Parts of a rebuild are looked after together,
// with the batch that ends it.
func (ix *Index) Apply(ctx context.Context, b index.Batch) error {
	if err := ix.apply(ctx, b); err != nil {
		return fmt.Errorf("applying epoch %d to index %s: %w", b.Epoch, ix.options.Name, err)
	}
	return nil
}

func (ix *Index) apply(ctx context.Context, b index.Batch) error {
	touched, err := b.Check(ix.options.Dimensions)
	if err != nil {
		return err
	}
	if err := ix.lock(ctx); err != nil {
		return err
	}
	defer ix.unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.Epoch < ix.epoch {
		return fmt.Errorf("the index is at epoch %d already: %w", ix.epoch, index.ErrInvalid)
	}
	change, err := ix.prepare(ctx, b, touched)
	if err != nil {
		return err
	}
	staged, err := ix.write(ctx, b, change)
	if err == nil {
		err = ix.postings.Publish(ctx, staged)
	}
	if err != nil {
		ix.stale = true
		return err
	}
	ix.epoch = b.Epoch
	return ix.commit(change)
}

// commit makes the present state of the embedded index that of the whole.
func (ix *Index) commit(change []shardChange) error {
	snapshot, err := ix.postings.Snapshot()
	if err != nil {
		return err
	}
	last := ix.current.number
	for i, c := range change {
		ix.owners.set(c.claimed)
		ix.shards[i].commit(c)
	}
	ix.publish(snapshot)
	for i, c := range change {
		ix.discard(garbage{last: last, epoch: ix.epoch, shard: i, rows: c.replaced})
	}
	ix.wakeSweeper()
	return nil
}

// publish makes the snapshot, with the shards as they are, the present state.
func (ix *Index) publish(snapshot *local.Reader) {
	shards := make([]shardState, len(ix.shards))
	for i, s := range ix.shards {
		shards[i] = shardState{s.collection, s.classes}
	}
	ix.mu.Lock()
	before, number := ix.current, uint64(1)
	if before != nil {
		number = before.number + 1
	}
	ix.current = newState(number, snapshot, shards, ix.owners, func() { ix.released(number) })
	ix.open[number] = true
	ix.mu.Unlock()
	if before != nil {
		before.release()
	}
}

// Holds reports whether the row is live and belongs to the ordinal.
func (ix *Index) Holds(ordinal, row uint32) bool { return ix.postings.Holds(ordinal, row) }

// Applied returns the epoch of the embedded index. The clusters have every row
// of it: an insert that they acknowledged is in their log.
func (ix *Index) Applied() uint64 { return ix.postings.Applied() }

// Flush makes the embedded index durable, which is all that is not.
func (ix *Index) Flush(ctx context.Context) error {
	if err := ix.lock(ctx); err != nil {
		return fmt.Errorf("flushing index %s: %w", ix.options.Name, err)
	}
	defer ix.unlock()
	if err := ix.postings.Flush(ctx); err != nil {
		return err
	}
	ix.wakeSweeper()
	return nil
}

// Reader returns the present state.
func (ix *Index) Reader() (index.Reader, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.current == nil || !ix.current.acquire() {
		return nil, index.ErrClosed
	}
	return &reader{state: ix.current, options: ix.options}, nil
}

// Close sweeps a last time; what is left then, the next Open finds. The clusters
// stay connected, and open Readers valid.
func (ix *Index) Close() error {
	ix.stop()
	<-ix.done
	ix.lastSweep()
	return ix.end()
}

// Drop closes the index and removes it from the clusters, and its directory.
func (ix *Index) Drop() error {
	ix.stop()
	<-ix.done
	if err := ix.end(); err != nil {
		return err
	}
	var clusters []*Cluster
	for _, s := range ix.shards {
		clusters = append(clusters, s.Cluster)
	}
	return Remove(context.Background(), clusters, ix.options) // each call has a deadline of its own
}

func (ix *Index) lastSweep() {
	ctx, cancel := context.WithTimeout(context.Background(), sweepRetry)
	defer cancel()
	if err := ix.sweep(ctx); err != nil {
		ix.options.Log.Warn("rows of former versions could not be deleted", "index", ix.options.Name, "error", err)
	}
}

// end lets go of the present state, once the sweeping goroutine has ended.
func (ix *Index) end() error {
	if err := ix.lock(context.Background()); err != nil {
		return nil // closed before
	}
	defer ix.unlock()
	ix.mu.Lock()
	before := ix.current
	ix.current = nil
	ix.mu.Unlock()
	before.release()
	return ix.postings.Close()
}
