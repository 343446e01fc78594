package pebble

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
)

// cachedStore is a store with n documents, d0 to dn, whose cache takes limit bytes.
func cachedStore(t testing.TB, n, limit int) (*Store, uint32) {
	t.Helper()
	s, err := Open("data", Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.records.limit = limit
	c, _, err := s.CreateCollection(t.Context(), "t", "c", store.Settings{})
	require.NoError(t, err)
	for i := range n {
		_, err := s.Commit(t.Context(), c.ID, testVersion(fmt.Sprint("d", i), "text", 1))
		require.NoError(t, err)
	}
	return s, c.ID
}

func all(n int) (ordinals []uint32) {
	for i := range n {
		ordinals = append(ordinals, uint32(i))
	}
	return ordinals
}

// held is how many of the ordinals the cache has.
func held(s *Store, generation uint32, ordinals []uint32) int {
	read := s.records.read(s.db, generation, ordinals)
	if read.snapshot != nil {
		read.snapshot.Close() //nolint:errcheck // nothing was read
	}
	return len(ordinals) - read.missing
}

func readRecords(t *testing.T, s *Store, generation uint32, ordinals []uint32) map[uint32]store.Record {
	t.Helper()
	records, err := s.Records(t.Context(), generation, ordinals)
	require.NoError(t, err)
	return records
}

func readBy(subject string) func(filter.Access) (filter.Access, error) {
	return func(filter.Access) (filter.Access, error) {
		return filter.Access{Readers: filter.Readers{List: []filter.Reader{filter.User(subject)}}}, nil
	}
}

// A second read is served from memory, and says the same.
func TestRecordsAreReadOnce(t *testing.T) {
	s, c := cachedStore(t, 20, 1<<20)
	first := readRecords(t, s, c, all(25))
	require.Len(t, first, 20)
	require.Equal(t, 20, held(s, c, all(25)))
	require.Equal(t, first, readRecords(t, s, c, all(25)))
	require.Zero(t, held(s, c+1, all(25)), "another generation's")
}

// Each kind of write takes from the cache what it touches, and nothing else.
func TestWritesReachTheRecordCache(t *testing.T) {
	s, c := cachedStore(t, 4, 1<<20)
	ctx, ordinals := t.Context(), all(4)
	before := readRecords(t, s, c, ordinals)

	_, err := s.SetAccess(ctx, c, "d1", readBy("somebody"))
	require.NoError(t, err)
	_, err = s.Delete(ctx, c, "d2")
	require.NoError(t, err)
	_, err = s.Commit(ctx, c, testVersion("d3", "other text", 2))
	require.NoError(t, err)
	require.Equal(t, 1, held(s, c, ordinals))

	after := readRecords(t, s, c, ordinals)
	require.Equal(t, before[0], after[0])
	require.Equal(t, []filter.Reader{filter.User("somebody")}, after[1].Access.Readers.List)
	require.NotContains(t, after, uint32(2))
	require.EqualValues(t, 2, after[3].Version)
}

// A generation that is removed is gone from the cache as well.
func TestRemovedGenerationsLeaveTheRecordCache(t *testing.T) {
	s, c := cachedStore(t, 1, 1<<20)
	built := testVersion("d0", "text", 2)
	next, err := s.SetGenerations(t.Context(), c, func(live []store.Generation) ([]store.Generation, error) {
		return append(live, store.Generation{Role: store.Building, Chunker: built.Chunker, Model: built.Model}), nil
	})
	require.NoError(t, err)
	building := next.Live()[1].ID
	done, err := s.Build(t.Context(), c, readRecords(t, s, c, all(1))[0], store.Build{
		Generation: building, Chunker: built.Chunker, Model: built.Model,
		Chunks: built.Chunks, Dimensions: built.Dimensions, Vectors: built.Vectors, Codes: built.Codes,
	})
	require.NoError(t, err)
	require.True(t, done)
	require.Len(t, readRecords(t, s, building, all(1)), 1)

	_, err = s.SetGenerations(t.Context(), c, func(live []store.Generation) ([]store.Generation, error) { return live[:1], nil })
	require.NoError(t, err)
	require.Empty(t, readRecords(t, s, building, all(1)))
}

// What was read before a write, or during one, isn't kept after it; and while a
// batch is applied, what it touches is not in the cache.
func TestOldReadsAreNotKept(t *testing.T) {
	s, c := cachedStore(t, 2, 1<<20)
	readRecords(t, s, c, all(2))
	batch := s.db.NewBatch()
	require.NoError(t, batch.Set(ordinalKey(tagRecord, c, 0), []byte("new"), nil))
	before := s.records.read(s.db, c, all(3))
	var during recordsRead
	s.records.write(batch, func() {
		require.Equal(t, 1, held(s, c, all(2)))
		during = s.records.read(s.db, c, all(3))
		for _, read := range []recordsRead{before, during} {
			read.bodies[0] = []byte("old")
			s.records.keep(&read)
			require.Equal(t, 1, held(s, c, all(2)))
		}
	})
	for _, read := range []recordsRead{before, during} {
		require.NoError(t, read.snapshot.Close())
		s.records.keep(&read)
		require.Equal(t, 1, held(s, c, all(2)))
	}
	require.NoError(t, batch.Close())
}

// The cache counts what it holds, and holds no more than it may.
func TestTheRecordCacheIsBounded(t *testing.T) {
	const limit = 2000
	s, c := cachedStore(t, 50, limit)
	for i := range 50 {
		readRecords(t, s, c, all(i+1))
		size := 0
		for _, body := range s.records.bodies {
			size += len(body) + recordOverhead
		}
		require.Equal(t, size, s.records.size)
		require.LessOrEqual(t, size, limit)
	}
	require.NotEmpty(t, s.records.bodies)
}

// Readers beside a writer: whoever begins after an acknowledgement reads what was
// acknowledged, and no read mixes two states. The writer goes through the
// documents in their order, so none is ever ahead of the one before it.
func TestRecordsBesideAWriter(t *testing.T) {
	const documents, rounds = 6, 300
	for _, limit := range []int{1 << 20, 500} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s, c := cachedStore(t, documents, limit)
			var acknowledged [documents]atomic.Uint64
			var done atomic.Bool
			var group sync.WaitGroup
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			for n := range 3 {
				group.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(n)))
					for !done.Load() {
						readBesideAWriter(t, s, c, random, &acknowledged)
					}
				})
			}
			for round := range rounds {
				for i := range documents {
					r, err := s.SetAccess(t.Context(), c, fmt.Sprint("d", i), readBy(fmt.Sprintf("%06d", round)))
					require.NoError(t, err)
					acknowledged[i].Store(r.Epoch)
				}
			}
			done.Store(true)
			group.Wait()
		})
	}
}

func readBesideAWriter(t *testing.T, s *Store, c uint32, random *rand.Rand, acknowledged *[6]atomic.Uint64) {
	var ordinals []uint32
	for _, o := range random.Perm(len(acknowledged))[:1+random.IntN(len(acknowledged))] {
		ordinals = append(ordinals, uint32(o))
	}
	var least [6]uint64
	for i := range acknowledged {
		least[i] = acknowledged[i].Load()
	}
	records, err := s.Records(t.Context(), c, ordinals)
	if err != nil {
		t.Error(err)
		return
	}
	last := filter.User("999999")
	for i := range acknowledged {
		r, asked := records[uint32(i)]
		if !asked || len(r.Access.Readers.List) == 0 {
			continue
		}
		if r.Epoch < least[i] {
			t.Errorf("document %d of epoch %d, though %d was acknowledged", i, r.Epoch, least[i])
		}
		if r.Access.Readers.List[0] > last {
			t.Errorf("document %d is of round %s, one before it of round %s", i, r.Access.Readers.List[0], last)
		}
		last = r.Access.Readers.List[0]
	}
}
