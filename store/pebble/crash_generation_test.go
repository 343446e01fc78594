package pebble

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
)

// reindexing is a collection whose generations go through a whole reindex.
type reindexing struct {
	t     *testing.T
	store *Store
	id    uint32
	steps atomic.Int64 // acknowledged
	keys  []string
}

// crashedReindex is a disk after a crash, with how many steps were acknowledged then.
type crashedReindex struct {
	fs   *vfs.MemFS
	done int64
}

func (r *reindexing) did(err error) {
	require.NoError(r.t, err)
	r.steps.Add(1)
}

func (r *reindexing) roles(role map[store.Role]store.Role) {
	_, err := r.store.SetGenerations(r.t.Context(), r.id, func(live []store.Generation) (next []store.Generation, err error) {
		for _, g := range live {
			if g.Role = role[g.Role]; g.Role != 0 {
				next = append(next, g)
			}
		}
		return next, nil
	})
	r.did(err)
}

// write commits a document for all generations there are.
func (r *reindexing) write(key, text string) {
	c, err := r.store.Collection(r.t.Context(), "t", "c")
	require.NoError(r.t, err)
	live := c.Live()
	v := testVersion(key, text, 2)
	v.Generation, v.Parsed = live[0].ID, []byte(text)
	v.Chunker = kindOf(live[0])
	for _, g := range live[1:] {
		v.Builds = append(v.Builds, buildFrom(g, text))
	}
	_, err = r.store.Commit(r.t.Context(), r.id, v)
	r.did(err)
}

// kindOf is the chunker of a generation's documents.
func kindOf(g store.Generation) string {
	if g.Chunker == "" {
		return "first/1"
	}
	return g.Chunker
}

func buildFrom(g store.Generation, text string) store.Build {
	v := testVersion("", text, 3)
	return store.Build{Generation: g.ID, Chunker: kindOf(g), Model: "m", Chunks: v.Chunks, Dimensions: v.Dimensions, Vectors: v.Vectors, Codes: v.Codes}
}

// reindex does everything that may happen to generations, once.
func (r *reindexing) reindex() {
	ctx := r.t.Context()
	for i := range 6 {
		r.keys = append(r.keys, fmt.Sprint("k", i))
		r.write(r.keys[i], fmt.Sprint("text of ", i))
	}
	c, err := r.store.SetGenerations(ctx, r.id, func(live []store.Generation) ([]store.Generation, error) {
		return append(live, store.Generation{Role: store.Building, Chunker: "second/1", Model: "m"}), nil
	})
	r.did(err)
	g, _ := c.Generation(store.Building)
	for i, key := range r.keys {
		record, err := r.store.Lookup(ctx, c.Serving().ID, key)
		require.NoError(r.t, err)
		_, err = r.store.Build(ctx, r.id, record, buildFrom(g, fmt.Sprint("text of ", i)))
		r.did(err)
		r.did(r.store.KeepEmbeddings(ctx, []store.Embedding{{Key: store.EmbeddingKey{byte(i)}, Value: []byte(key)}}))
	}
	r.write("k1", "another text")
	_, err = r.store.SetAccess(ctx, r.id, "k2", func(filter.Access) (filter.Access, error) {
		return filter.Access{Attributes: filter.Attributes{"n": int64(2)}}, nil
	})
	r.did(err)
	_, err = r.store.Delete(ctx, r.id, "k3")
	r.did(err)
	r.roles(map[store.Role]store.Role{store.Serving: store.Previous, store.Building: store.Serving})
	r.write("k4", "after the switch")
	r.roles(map[store.Role]store.Role{store.Serving: store.Previous, store.Previous: store.Serving})
	r.write("k5", "after the rollback")
	r.roles(map[store.Role]store.Role{store.Serving: store.Serving})
}

// A crash at any write to disk during a reindex leaves a store that is sound,
// whose generations agree in documents, versions and access, each of one chunker.
func TestCrashDuringAReindex(t *testing.T) {
	for run := range uint64(*crashRuns) {
		seed := *crashSeed + run
		rng := rand.New(rand.NewPCG(seed, 5))
		fs := vfs.NewCrashableMem()
		r := &reindexing{t: t}
		var crashes []crashedReindex
		var mu sync.Mutex
		c := errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && rng.IntN(3) == 0 {
				done := r.steps.Load()
				crashes = append(crashes, crashedReindex{fs.CrashClone(crashConfig(rng)), done})
			}
			return nil
		})
		s, err := Open("data", Options{FS: errorfs.Wrap(fs, c), memTableSize: 64 << 10})
		require.NoError(t, err)
		collection, _, err := s.CreateCollection(t.Context(), "t", "c", store.Settings{})
		require.NoError(t, err)
		r.store, r.id = s, collection.ID
		r.reindex()
		require.NoError(t, s.Close())
		require.NotEmpty(t, crashes)
		for i, crash := range crashes {
			crash.check(t, fmt.Sprintf("seed %d crash %d", seed, i))
		}
	}
}

func (c crashedReindex) check(t *testing.T, what string) {
	s, err := Open("data", Options{FS: c.fs})
	require.NoError(t, err, what)
	defer func() { require.NoError(t, s.Close()) }()
	requireSound(t, s)
	collection, err := s.Collection(t.Context(), "t", "c")
	if c.done == 0 && err != nil {
		return
	}
	require.NoError(t, err, what)
	epoch, err := s.Epoch(t.Context())
	require.NoError(t, err)
	size, err := s.CacheSize(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, int64(epoch)+size.Entries, c.done+1, "%s: an acknowledged step is gone", what)
	serving := recordsOf(t, s, collection.Serving())
	for _, g := range collection.Live() {
		records := recordsOf(t, s, g)
		if g.Role != store.Building {
			require.Len(t, records, len(serving), what)
		}
		for key, r := range records {
			require.Equal(t, kindOf(g), r.Chunker, what)
			require.Equal(t, serving[key].Version, r.Version, what)
			require.Equal(t, serving[key].Access, r.Access, what)
			require.Equal(t, serving[key].Ordinal, r.Ordinal, what)
		}
	}
}

func recordsOf(t *testing.T, s *Store, g store.Generation) map[string]store.Record {
	records := map[string]store.Record{}
	for r, err := range s.Scan(t.Context(), g.ID, 0) {
		require.NoError(t, err)
		records[r.Key] = r
	}
	return records
}
