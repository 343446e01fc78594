// Package local is the embedded index: one directory for one generation of one
// collection. Documents live in immutable, checksummed segments: fresh ones in
// memory, sealed ones in files. A manifest names the sealed ones; switching it
// is what makes a state durable. docs/formats/index.md describes the files.
package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"sluice/index"
	"sluice/index/local/ivf"
)

// Index implements index.Index.
type Index struct {
	dir     string
	options Options
	space   *ivf.Space
	memory  sync.Pool // of *scratch

	writing chan struct{} // held by whoever changes the index; guards the next fields
	nextID  uint64
	dirty   bool // something was applied since the last commit

	mu      sync.Mutex // guards current
	current *snapshot  // nil: closed
	durable atomic.Uint64

	wake    chan struct{} // there may be something to merge
	merging chan struct{} // held by whoever merges
	pending atomic.Uint64 // id of the segment a merge is writing
	stop    context.CancelFunc
	done    chan struct{} // the merging goroutine has ended
}

var (
	_ index.Index   = (*Index)(nil)
	_ index.Dropper = (*Index)(nil)
)

// Open opens the index in dir, or creates it if dir is missing or empty.
//
// index.ErrNewerFormat: a later version wrote it. index.ErrRebuild: it is
// damaged, or was made with another model, analyzer or number of dimensions;
// remove the directory, open it anew and fill it from the store.
func Open(dir string, options Options) (*Index, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("opening index %s: %w", dir, err)
	}
	m, err := openManifest(dir, options)
	if err != nil {
		return nil, err
	}
	space := options.space()
	parts, err := openParts(dir, options, space, m)
	if err != nil {
		return nil, err
	}
	ix := newIndex(dir, options, space, m, parts)
	merging, stop := context.WithCancel(context.Background())
	ix.stop = stop
	go ix.mergeLoop(merging)
	ix.wakeMerger() // the last run may have left some to do
	return ix, nil
}

// newIndex takes over the parts' segments.
func newIndex(dir string, options Options, space *ivf.Space, m *manifest, parts []part) *Index {
	ix := &Index{
		dir:     dir,
		options: options,
		space:   space,
		memory:  sync.Pool{New: func() any { return new(scratch) }},
		writing: make(chan struct{}, 1),
		nextID:  m.nextID,
		current: newSnapshot(m.epoch, parts),
		wake:    make(chan struct{}, 1),
		merging: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	releaseAll(parts)
	ix.durable.Store(m.epoch)
	return ix
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

// Apply makes the batch searchable.
func (ix *Index) Apply(ctx context.Context, b index.Batch) error {
	staged, err := ix.Stage(ctx, b)
	if err != nil {
		return err
	}
	return ix.Publish(ctx, staged)
}

// Staged is a batch that is analysed and not searchable yet.
type Staged struct {
	epoch   uint64
	touched []uint32
	built   *segment // nil: no rows
}

// Stage does of Apply what takes long and changes no answer. It first seals the
// fresh rows if they are many.
func (ix *Index) Stage(ctx context.Context, b index.Batch) (*Staged, error) {
	staged, err := ix.stage(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("applying epoch %d to index %s: %w", b.Epoch, ix.dir, err)
	}
	return staged, nil
}

func (ix *Index) stage(ctx context.Context, b index.Batch) (*Staged, error) {
	touched, err := b.Check(ix.options.Dimensions)
	if err != nil {
		return nil, err
	}
	built, err := buildSegment(ctx, b.Put, ix.options.Dimensions, ix.options.Analyzer)
	if err != nil {
		return nil, err
	}
	return &Staged{b.Epoch, touched, built}, ix.makeRoom(ctx)
}

// makeRoom seals the fresh rows, or merges their segments.
func (ix *Index) makeRoom(ctx context.Context) error {
	if err := ix.lock(ctx); err != nil {
		return err
	}
	defer ix.unlock()
	if ix.full() {
		return ix.commit(ctx, ix.current.parts)
	}
	parts, err := ix.compact(ctx, slices.Clone(ix.current.parts))
	if err == nil && len(parts) < len(ix.current.parts) {
		ix.publish(ix.current.epoch, parts)
	}
	return err
}

// Publish makes a staged batch searchable, once.
func (ix *Index) Publish(ctx context.Context, s *Staged) error {
	if err := ix.publishStaged(ctx, s); err != nil {
		return fmt.Errorf("applying epoch %d to index %s: %w", s.epoch, ix.dir, err)
	}
	return nil
}

func (ix *Index) publishStaged(ctx context.Context, s *Staged) error {
	if err := ix.lock(ctx); err != nil {
		return err
	}
	defer ix.unlock()
	if s.epoch < ix.current.epoch {
		return fmt.Errorf("the index is at epoch %d already: %w", ix.current.epoch, index.ErrInvalid)
	}
	ix.publish(s.epoch, changed(ix.current.parts, s))
	ix.dirty = true
	return nil
}

// changed returns the parts without the touched documents and with the built segment.
func changed(present []part, s *Staged) []part {
	parts := make([]part, 0, len(present)+1)
	for _, p := range present {
		if p = p.without(s.touched); p.seg.id != 0 || p.liveRows() > 0 {
			parts = append(parts, p)
		}
	}
	if s.built != nil {
		parts = append(parts, part{seg: s.built})
	}
	return parts
}

// compact merges fresh segments so that each has at least twice the rows of
// the one after it: their number stays logarithmic.
func (ix *Index) compact(ctx context.Context, parts []part) ([]part, error) {
	for n := len(parts); n >= 2; n = len(parts) {
		older, newer := parts[n-2], parts[n-1]
		if older.seg.id != 0 || older.seg.rows() >= 2*newer.seg.rows() {
			break
		}
		merged, err := mergeFresh(ctx, ix.options.Dimensions, parts[n-2:])
		if err != nil {
			return nil, err
		}
		parts = append(parts[:n-2], part{seg: merged})
	}
	return parts, nil
}

// full reports whether the fresh rows exceed their bounds.
func (ix *Index) full() bool {
	rows, size := 0, 0
	for _, p := range ix.current.parts {
		if p.seg.id == 0 {
			rows += p.seg.rows()
			size += len(p.seg.data)
		}
	}
	return rows >= ix.options.FreshRows || size >= ix.options.FreshBytes
}

// Holds reports whether the row is live and belongs to the ordinal.
func (ix *Index) Holds(ordinal, row uint32) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.current == nil {
		return false
	}
	return slices.ContainsFunc(ix.current.parts, func(p part) bool { return p.holds(ordinal, row) })
}

// Applied returns the epoch of the manifest.
func (ix *Index) Applied() uint64 { return ix.durable.Load() }

// Flush seals the fresh rows and switches the manifest.
func (ix *Index) Flush(ctx context.Context) error {
	if err := ix.lock(ctx); err != nil {
		return fmt.Errorf("flushing index %s: %w", ix.dir, err)
	}
	defer ix.unlock()
	if !ix.dirty {
		return nil
	}
	if err := ix.commit(ctx, ix.current.parts); err != nil {
		return fmt.Errorf("flushing index %s: %w", ix.dir, err)
	}
	return nil
}

// Reader returns the present state.
func (ix *Index) Reader() (index.Reader, error) {
	r, err := ix.Snapshot()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Snapshot is Reader for who also asks what rows there are.
func (ix *Index) Snapshot() (*Reader, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.current == nil {
		return nil, index.ErrClosed
	}
	ix.current.acquire()
	return &Reader{state: ix.current, dims: ix.options.Dimensions, space: ix.space, log: ix.options.Log, analyzer: ix.options.Analyzer, memory: &ix.memory}, nil
}

// publish makes parts the present state. The caller holds the lock.
func (ix *Index) publish(epoch uint64, parts []part) {
	next := newSnapshot(epoch, parts)
	ix.mu.Lock()
	before := ix.current
	ix.current = next
	ix.mu.Unlock()
	before.release()
}

// Close ends the merging and lets go of the segments. What was applied since
// the last Flush is lost, and comes again from the feed.
func (ix *Index) Close() error {
	ix.stop()
	<-ix.done
	if err := ix.lock(context.Background()); err != nil {
		return nil // closed before
	}
	defer ix.unlock()
	ix.mu.Lock()
	before := ix.current
	ix.current = nil
	ix.mu.Unlock()
	before.release()
	return nil
}

// Drop closes the index and removes its directory.
func (ix *Index) Drop() error {
	if err := ix.Close(); err != nil {
		return err
	}
	if err := ix.options.FS.RemoveAll(ix.dir); err != nil {
		return fmt.Errorf("removing the index in %s: %w", ix.dir, err)
	}
	return nil
}

// Stats are sizes of the present state.
type Stats struct {
	Rows      int // that can be found
	FreshRows int // of those, in memory only
	Segments  int // sealed
	Bytes     int // of all segments, fresh and sealed
}

// Stats returns zeros once the index is closed.
func (ix *Index) Stats() (s Stats) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.current == nil {
		return s
	}
	for _, p := range ix.current.parts {
		s.Rows += p.liveRows()
		s.Bytes += len(p.seg.data)
		if p.seg.id == 0 {
			s.FreshRows += p.liveRows()
		} else {
			s.Segments++
		}
	}
	return s
}
