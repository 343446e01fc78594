package pebble

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/store"
)

var (
	crashSeed = flag.Uint64("crash.seed", 1, "seed of the crash tests")
	crashRuns = flag.Int("crash.runs", 8, "runs of the crash test, with a few dozen crashes each; with -short one of them")
)

// testVersion makes a version with a text, of some chunks with vectors that follow from it.
func testVersion(key, text string, chunks int) store.Version {
	v := store.Version{
		Key: key, Title: key, Format: "text", Chunker: fmt.Sprint("text/", chunks), Model: "m",
		Identity: sha256.Sum256([]byte(text)), Text: text, Dimensions: 4,
	}
	for i := range chunks {
		v.Chunks = append(v.Chunks, chunk.Chunk{Start: i * len(text) / chunks, End: (i + 1) * len(text) / chunks})
		v.Vectors = append(v.Vectors, float32(len(text)), float32(i), 0.25, -1)
		v.Codes = append(v.Codes, fmt.Appendf(nil, "%d codes of %x", i, v.Identity[:4]))
	}
	return v
}

// history is what happened to one key, written by one goroutine. A nil state is
// the absence of the document.
type history struct {
	states []*store.Version // states[0] is nil
	acked  int              // index of the last acknowledged one
}

// journal is what the writers did, for all keys.
type journal struct {
	mu       sync.Mutex
	keys     map[string]*history
	epoch    uint64 // greatest one acknowledged or seen in the feed
	ordinals uint64 // all ordinals below were given out, by acknowledged writes
	rows     uint64
}

// begin notes that a key is about to get a state.
func (j *journal) begin(key string, state *store.Version) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.keys[key]
	h.states = append(h.states, state)
}

func (j *journal) acknowledged(key string, r store.Receipt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.keys[key]
	h.acked = len(h.states) - 1
	j.epoch = max(j.epoch, r.Epoch)
	j.ordinals = max(j.ordinals, uint64(r.Ordinal)+1)
	j.rows = max(j.rows, uint64(r.FirstRow)+uint64(r.Rows))
}

func (j *journal) sawEpoch(epoch uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.epoch = max(j.epoch, epoch)
}

func (j *journal) present(key string) *store.Version {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.keys[key]
	return h.states[len(h.states)-1]
}

// copy returns the journal as it is now.
func (j *journal) copy() *journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &journal{keys: map[string]*history{}, epoch: j.epoch, ordinals: j.ordinals, rows: j.rows}
	for key, h := range j.keys {
		c.keys[key] = &history{states: h.states[:len(h.states):len(h.states)], acked: h.acked}
	}
	return c
}

// crash is a disk after a crash, with what was done before and by the time of it.
type crash struct {
	fs            *vfs.MemFS
	before, after *journal
}

// crasher is a file system of which it takes a crash clone now and then, just
// before something is written.
type crasher struct {
	fs      *vfs.MemFS
	journal *journal
	mu      sync.Mutex
	rng     *rand.Rand
	every   int
	crashes []crash
}

func (c *crasher) String() string { return "crasher" }

func (c *crasher) MaybeError(op errorfs.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && c.rng.IntN(c.every) == 0 {
		before := c.journal.copy()
		clone := c.fs.CrashClone(crashConfig(c.rng))
		c.crashes = append(c.crashes, crash{clone, before, c.journal.copy()})
	}
	return nil
}

// crashConfig keeps none, some or all of what was not synced.
func crashConfig(rng *rand.Rand) vfs.CrashCloneCfg {
	return vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 0, 20, 50, 100}[rng.IntN(5)],
		RNG:                 rand.New(rand.NewPCG(rng.Uint64(), 4)),
	}
}

// With -short it is one run under a random seed, and a few of its crashes.
func TestCrash(t *testing.T) {
	points, first, runs := 0, *crashSeed, *crashRuns
	if testing.Short() {
		first, runs = rand.Uint64N(1<<20), 1
	}
	for run := range runs {
		seed := first + uint64(run)
		rng := rand.New(rand.NewPCG(seed, 0))
		crashes := someOf(crashingRun(t, rng), rng)
		for i, c := range crashes {
			if !t.Run(fmt.Sprintf("seed=%d/crash=%d", seed, i), func(t *testing.T) { c.check(t, rng) }) {
				return
			}
		}
		points += len(crashes)
	}
	t.Logf("%d crashes survived", points)
	require.Greater(t, points, runs)
}

const crashesShort = 5

// someOf returns all crashes or, with -short, a few spread over them.
func someOf(all []crash, rng *rand.Rand) (some []crash) {
	stride, at := 1, 0
	if testing.Short() {
		stride = max(1, len(all)/crashesShort)
		at = rng.IntN(stride)
	}
	for ; at < len(all); at += stride {
		some = append(some, all[at])
	}
	return some
}

const crashWriters = 6

// crashingRun lets writers loose on a new store and returns the crashes on their way.
func crashingRun(t *testing.T, rng *rand.Rand) []crash {
	fs := vfs.NewCrashableMem()
	j := &journal{keys: map[string]*history{}}
	for w := range crashWriters {
		for k := range 3 {
			j.keys[crashKey(w, k)] = &history{states: []*store.Version{nil}}
		}
	}
	c := &crasher{fs: fs, journal: j, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), every: 4}
	s, err := Open("data", Options{FS: errorfs.Wrap(fs, c), memTableSize: 64 << 10})
	require.NoError(t, err)
	collection, _, err := s.CreateCollection(t.Context(), "t", "c", store.Settings{})
	require.NoError(t, err)

	var group sync.WaitGroup
	for w := range crashWriters {
		random := rand.New(rand.NewPCG(rng.Uint64(), 2))
		group.Go(func() { crashWriter(t, s, collection.ID, j, w, random) })
	}
	following, stop := context.WithCancel(t.Context())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		crashFollower(following, s, j)
	}()
	group.Wait()
	stop()
	<-followed
	require.NoError(t, s.Close())
	return c.crashes
}

func crashKey(writer, key int) string { return fmt.Sprint("writer ", writer, " key ", key) }

// crashWriter does random things to its own keys.
func crashWriter(t *testing.T, s *Store, collection uint32, j *journal, w int, rng *rand.Rand) {
	for i := range 25 {
		key := crashKey(w, rng.IntN(3))
		if err := crashWrite(t.Context(), s, collection, j, key, i, rng); err != nil {
			t.Errorf("writing %s: %v", key, err)
		}
	}
}

func crashWrite(ctx context.Context, s *Store, collection uint32, j *journal, key string, i int, rng *rand.Rand) error {
	present := j.present(key)
	var r store.Receipt
	var err error
	switch kind := rng.IntN(4); {
	case kind == 0 && present != nil:
		j.begin(key, nil)
		r, err = s.Delete(ctx, collection, key)
		r.Rows = 0
	case kind == 1 && present != nil:
		next := *present
		next.Access = filter.Access{Attributes: filter.Attributes{"n": int64(i)}}
		j.begin(key, &next)
		r, err = s.SetAccess(ctx, collection, key, func(filter.Access) (filter.Access, error) { return next.Access, nil })
	default:
		text := fmt.Sprint(key, " ", i, strings.Repeat(fmt.Sprint(" ", rng.Uint64()), rng.IntN(300)))
		next := testVersion(key, text, rng.IntN(6))
		j.begin(key, &next)
		r, err = s.Commit(ctx, collection, next)
	}
	if err == nil {
		j.acknowledged(key, r)
	}
	return err
}

// crashFollower follows the feed.
func crashFollower(ctx context.Context, s *Store, j *journal) {
	for seen := uint64(0); s.WaitChange(ctx, seen) == nil; {
		changes, err := s.Changes(ctx, seen, 7)
		if err != nil || len(changes) == 0 {
			return
		}
		seen = changes[len(changes)-1].Epoch
		j.sawEpoch(seen)
	}
}

// check opens the store after the crash, and again after a crash right after that.
func (c crash) check(t *testing.T, rng *rand.Rand) {
	fs := c.fs
	for range 2 {
		s, err := Open("data", Options{FS: fs, memTableSize: 64 << 10})
		require.NoError(t, err)
		requireSound(t, s)
		c.compare(t, s)
		again := fs.CrashClone(crashConfig(rng))
		require.NoError(t, s.Close())
		fs = again
	}
}

// requireSound fails with every fault that Check finds.
func requireSound(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.Check(t.Context(), func(f store.Fault) { t.Errorf("check: %s: %s", f.Where, f.What) }))
}

func (c crash) compare(t *testing.T, s *Store) {
	epoch, err := s.Epoch(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, epoch, c.before.epoch)
	changes, err := s.Changes(t.Context(), 0, 1<<30)
	require.NoError(t, err)
	require.Len(t, changes, int(epoch))
	collection, err := s.Collection(t.Context(), "t", "c")
	if errors.Is(err, store.ErrNotFound) && c.before.epoch == 0 {
		return
	}
	require.NoError(t, err)
	for key, h := range c.before.keys {
		allowed := c.after.keys[key].states[h.acked:]
		requireOneOf(t, s, collection.ID, key, allowed)
	}
	r, err := s.Commit(t.Context(), collection.ID, testVersion("new", fmt.Sprint("text at epoch ", epoch), 1))
	require.NoError(t, err)
	require.Equal(t, epoch+1, r.Epoch)
	if r.Created {
		require.GreaterOrEqual(t, uint64(r.Ordinal), c.before.ordinals)
	}
	require.GreaterOrEqual(t, uint64(r.FirstRow), c.before.rows)
}

// requireOneOf fails unless the document is wholly in one of the states.
func requireOneOf(t *testing.T, s *Store, collection uint32, key string, allowed []*store.Version) {
	t.Helper()
	got := readVersion(t, s, collection, key)
	for _, state := range allowed {
		if cmp.Equal(state, got) {
			return
		}
	}
	t.Fatalf("%s is in none of the %d possible states; against the acknowledged one:\n%s", key, len(allowed), cmp.Diff(allowed[0], got))
}

// readVersion returns what a key holds in the form in which it was committed.
func readVersion(t *testing.T, s *Store, collection uint32, key string) *store.Version {
	r, err := s.Lookup(t.Context(), collection, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	require.NoError(t, err)
	c, err := s.Content(t.Context(), collection, r.Ordinal, true)
	require.NoError(t, err)
	var codes [][]byte
	require.NoError(t, s.Codes(t.Context(), collection, rowsOf(r), func(_ int, its []byte) { codes = append(codes, bytes.Clone(its)) }))
	return &store.Version{
		Key: c.Key, Title: c.Title, Format: c.Format, Chunker: c.Chunker, Model: c.Model, Identity: c.Identity,
		Text: c.Text, Chunks: c.Chunks, Dimensions: c.Dimensions, Vectors: c.Vectors, Codes: codes, Access: c.Access,
	}
}

func rowsOf(r store.Record) (rows []uint32) {
	for i := range r.Rows {
		rows = append(rows, r.FirstRow+i)
	}
	return rows
}

// A crash at any operation while the store is created, or opened again, leaves
// what can be opened.
func TestCrashWhileOpening(t *testing.T) {
	runs := uint64(20)
	if testing.Short() {
		runs = 2
	}
	for run := range runs {
		rng := rand.New(rand.NewPCG(*crashSeed+run, 3))
		fs := vfs.NewCrashableMem()
		c := &crasher{fs: fs, journal: &journal{}, rng: rng, every: 1}
		for range 2 {
			s, err := Open("data", Options{FS: errorfs.Wrap(fs, c)})
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		require.Greater(t, len(c.crashes), 20)
		for i, crash := range someOf(c.crashes, rng) {
			s, err := Open("data", Options{FS: crash.fs})
			require.NoError(t, err, "seed %d crash %d", *crashSeed+run, i)
			requireSound(t, s)
			require.NoError(t, s.Close())
		}
	}
}
