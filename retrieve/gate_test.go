package retrieve

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/store"
)

// stopped is a store whose feed or epoch cannot be read while told so, whose
// feed may come change by change, and which something may happen to before a scan.
type stopped struct {
	store.Store
	feed, epoch atomic.Pointer[error]
	singly      atomic.Bool
	beforeScan  atomic.Pointer[func()]
}

func (s *stopped) Scan(ctx context.Context, collection, from uint32) iter.Seq2[store.Record, error] {
	if happen := s.beforeScan.Swap(nil); happen != nil {
		(*happen)()
	}
	return s.Store.Scan(ctx, collection, from)
}

func (s *stopped) Changes(ctx context.Context, after uint64, limit int) ([]store.Change, error) {
	if err := s.feed.Load(); err != nil {
		return nil, *err
	}
	if s.singly.Load() {
		limit = 1
	}
	return s.Store.Changes(ctx, after, limit)
}

func (s *stopped) Epoch(ctx context.Context) (uint64, error) {
	if err := s.epoch.Load(); err != nil {
		return 0, *err
	}
	return s.Store.Epoch(ctx)
}

// neighbour is another daemon on the house's store, with indexes of its own.
type neighbour struct {
	*house
	store *stopped
}

func (h *house) neighbour(staleness time.Duration) *neighbour {
	h.t.Helper()
	return h.neighbourOn(&stopped{Store: h.store}, staleness)
}

func (h *house) neighbourOn(st *stopped, staleness time.Duration) *neighbour {
	h.t.Helper()
	h.awaitAll() // its follower writes down what it opens
	own := *h
	n := &neighbour{house: &own, store: st}
	own.indexFS = vfs.NewMem()
	var err error
	own.serving, err = newServing(h.t.Context(), n.store, "bag/1", own.openIndex, slog.New(slog.DiscardHandler), 1, Shared(staleness))
	require.NoError(h.t, err)
	own.engine = NewEngine(n.store, own.serving, own.embedder)
	h.t.Cleanup(func() { require.NoError(h.t, own.serving.Close(context.Background())) })
	return n
}

func (n *neighbour) stopFeed(err error) { n.store.feed.Store(&err) }

// ask searches, and returns the keys or why not.
func (n *neighbour) ask(subject string) ([]string, error) {
	r, err := n.engine.Search(context.Background(), n.request(person(subject), Sparse, "harbour", 10))
	return keysOf(r), err
}

// Nothing begins on a daemon that has not followed, and all does once it has.
func TestSharedStoreIsFollowedBeforeASearch(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(0)
	h.write("a", readable("user:me"), "harbour")
	keys, err := n.ask("me")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, keys, "what another daemon acknowledged is found")

	n.stopFeed(errInjected)
	h.await(h.setAccess("a", readable("user:other")).Epoch)
	_, err = n.ask("me")
	require.ErrorIs(t, err, ErrLagging)
	_, err = n.engine.Document(t.Context(), person("me"), library, "a")
	require.ErrorIs(t, err, ErrLagging)
	_, _, err = n.engine.List(t.Context(), person("me"), library, "", 10)
	require.ErrorIs(t, err, ErrLagging)
	_, _, err = n.engine.Explain(t.Context(), person("me"), library, "a")
	require.ErrorIs(t, err, ErrLagging)
	_, err = n.engine.Preview(t.Context(), tenant, library, Supposition{}, nil)
	require.ErrorIs(t, err, ErrLagging)

	n.store.feed.Store(nil)
	n.recovered()
	keys, err = n.ask("me")
	require.NoError(t, err)
	require.Empty(t, keys)
	keys, err = n.ask("other")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, keys)
}

func TestUnknownEpochIsNoPermission(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(0)
	h.write("a", readable("user:me"), "harbour")
	gone := error(store.ErrUnavailable)
	n.store.epoch.Store(&gone)
	_, err := n.ask("me")
	require.ErrorIs(t, err, store.ErrUnavailable)
}

// With a staleness a search needs no read so long after one; the recheck still
// reads the access rows as they are.
func TestStaleness(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(time.Hour)
	h.write("a", readable("user:me"), "harbour")
	h.write("b", readable("user:me"), "harbour")
	keys, err := n.ask("me")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, keys)
	n.stopFeed(errInjected)
	gone := error(store.ErrUnavailable)
	n.store.epoch.Store(&gone)
	h.await(h.setAccess("a", readable("user:other")).Epoch)
	keys, err = n.ask("me")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, keys)
}

// One read serves all who came before it began, and nobody who came later.
func TestEpochReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Uint64
		begin := make(chan struct{})
		g := &gate{now: time.Now, epoch: func(context.Context) (uint64, error) {
			n := reads.Add(1)
			<-begin
			return n, nil
		}}
		var asking sync.WaitGroup
		ask := func(want uint64) {
			asking.Go(func() {
				r, err := g.read(t.Context())
				if err != nil || r.epoch != want {
					t.Errorf("the reading %d is answered by %+v, %v", want, r, err)
				}
			})
			synctest.Wait()
		}
		ask(1)
		for range 50 {
			ask(2)
		}
		begin <- struct{}{}
		synctest.Wait()
		ask(3)
		close(begin)
		asking.Wait()
		g.close()
		require.EqualValues(t, 3, reads.Load())
	})
}

// A feed that stands still without a failure is waited for, and not for ever.
func TestWaitForTheFeedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Serving{done: make(chan struct{}), moved: make(chan struct{}), applied: 1}
		g := &gate{now: time.Now, epoch: func(context.Context) (uint64, error) { return 2, nil }}
		began := time.Now()
		require.ErrorIs(t, g.pass(t.Context(), s), ErrLagging)
		require.Equal(t, gateWait, time.Since(began))

		passed := make(chan error)
		go func() { passed <- g.pass(t.Context(), s) }()
		synctest.Wait()
		s.advance(2)
		require.NoError(t, <-passed)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, g.pass(ended, s), context.Canceled)
		g.close()
	})
}

// Where the feed is forgotten before it was followed, all is compared.
func TestResumeAfterTheFeedWasForgotten(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(0)
	for _, key := range []string{"stays", "goes", "changes", "hides"} {
		h.write(key, readable("user:me"), "harbour")
	}
	keys, err := n.ask("me")
	require.NoError(t, err)
	require.Len(t, keys, 4)
	n.gap(h, func() {
		h.remove("goes")
		h.put("changes", readable("user:me"), "meadow")
		h.setAccess("hides", readable("user:other"))
		h.put("new", readable("user:me"), "harbour")
	})
	keys, err = n.ask("me")
	require.NoError(t, err)
	require.Equal(t, []string{"stays", "new"}, keys)
	r, err := n.engine.Search(t.Context(), n.request(person("me"), Sparse, "harbour meadow", 10))
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, h.search(person("me"), Sparse, "harbour meadow", 10)), bytesOf(t, r))
}

// gap has things happen that the neighbour's feed forgets before it tells of them.
func (n *neighbour) gap(h *house, happen func()) {
	n.t.Helper()
	n.stopFeed(errInjected)
	happen()
	h.awaitAll()
	require.Eventually(n.t, func() bool { return n.serving.Ready() != nil }, patience, time.Millisecond)
	require.NoError(n.t, h.store.Trim(n.t.Context(), h.serving.Applied()))
	n.store.feed.Store(nil)
	n.recovered()
}

// begin adds a building generation with all documents that there are; each is one chunk of it.
func (h *house) begin(chunker string) store.Generation {
	h.t.Helper()
	c := h.regenerate(func(live []store.Generation) []store.Generation {
		return append(live, store.Generation{Role: store.Building, Chunker: chunker, Model: "bag/1"})
	})
	g, _ := c.Generation(store.Building)
	for record, err := range h.store.Scan(h.t.Context(), c.Serving().ID, 0) {
		require.NoError(h.t, err)
		content, err := h.store.Content(h.t.Context(), c.Serving().ID, record.Ordinal, true)
		require.NoError(h.t, err)
		built, err := h.store.Build(h.t.Context(), h.id, record, store.Build{
			Generation: g.ID, Chunker: chunker, Model: "bag/1", Dimensions: dimensions,
			Chunks: []chunk.Chunk{{End: len(content.Text)}}, Vectors: vectorOf(content.Text),
		})
		require.NoError(h.t, err)
		require.True(h.t, built)
	}
	return g
}

// switchOver has the building generation serve, and drops the one that served.
func (h *house) switchOver() {
	h.t.Helper()
	h.awaitAll() // an old generation is dropped long after searches here have left it
	h.regenerate(func(live []store.Generation) []store.Generation {
		live[1].Role = store.Serving
		return live[1:]
	})
}

func (h *house) regenerate(change func([]store.Generation) []store.Generation) store.Collection {
	h.t.Helper()
	c, err := h.store.SetGenerations(h.t.Context(), h.id, func(live []store.Generation) ([]store.Generation, error) { return change(live), nil })
	require.NoError(h.t, err)
	return c
}

// Generations that came, served and went while the feed was forgotten are those
// of the store afterwards.
func TestResumeAfterGenerationsChanged(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(0)
	for _, key := range []string{"stays", "goes"} {
		h.write(key, readable("user:me"), "harbour")
	}
	_, err := n.ask("me")
	require.NoError(t, err)
	var second, third store.Generation
	n.gap(h, func() {
		second = h.begin("test/2")
		h.switchOver()
		h.add("new", second)
		h.remove("goes")
	})
	n.requireAsIn(h, second.ID)
	require.Equal(t, []uint32{second.ID}, n.indexed())

	n.gap(h, func() {
		third = h.begin("test/3")
		h.remove("stays")
	})
	n.requireAsIn(h, second.ID)
	require.Equal(t, []uint32{second.ID, third.ID}, n.indexed())
	n.gap(h, func() { h.switchOver() })
	n.requireAsIn(h, third.ID)
	require.Equal(t, []uint32{third.ID}, n.indexed())
}

// A follower that is still before a switch when the old generation is dropped
// takes none of its documents for deleted.
func TestADroppedGenerationDeletesNothing(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(0)
	for _, key := range []string{"stays", "changes", "goes"} {
		h.write(key, readable("user:me"), "harbour")
	}
	second := h.begin("test/2")
	_, err := n.ask("me")
	require.NoError(t, err)
	n.stopFeed(errInjected)
	h.setAccess("changes", readable("user:me", "user:other"))
	h.remove("goes")
	h.switchOver()
	n.store.singly.Store(true)
	n.store.feed.Store(nil)
	n.recovered()
	n.requireAsIn(h, second.ID)
	require.Equal(t, []uint32{second.ID}, n.indexed())
}

// The same between two reads of what a daemon starts with, or compares.
func TestAGenerationDroppedWhileItIsRead(t *testing.T) {
	h := newHouse(t)
	st := &stopped{Store: h.store}
	switchOver := h.switchOver
	h.write("stays", readable("user:me"), "harbour")
	second := h.begin("test/2")
	st.beforeScan.Store(&switchOver)
	n := h.neighbourOn(st, 0)
	n.requireAsIn(h, second.ID)

	var third store.Generation
	n.gap(h, func() {
		h.add("new", second)
		third = h.begin("test/3")
		st.beforeScan.Store(&switchOver)
	})
	n.requireAsIn(h, third.ID)
}

// add writes a document to the only generation.
func (h *house) add(key string, g store.Generation) {
	h.t.Helper()
	v := version(key, readable("user:me"), "harbour")
	v.Generation, v.Chunker = g.ID, g.Chunker
	h.commit(v)
}

// requireAsIn: both daemons find the same, in the generation.
func (n *neighbour) requireAsIn(h *house, generation uint32) {
	n.t.Helper()
	h.awaitAll()
	want := h.search(person("me"), Sparse, "harbour", 10)
	require.NotEmpty(n.t, want.Results)
	got, err := n.engine.Search(n.t.Context(), n.request(person("me"), Sparse, "harbour", 10))
	require.NoError(n.t, err)
	require.Equal(n.t, generation, got.Generation)
	require.Equal(n.t, bytesOf(n.t, want), bytesOf(n.t, got))
}

// indexed is which generations have an index here.
func (n *neighbour) indexed() []uint32 {
	n.serving.mu.Lock()
	defer n.serving.mu.Unlock()
	return slices.Sorted(maps.Keys(n.serving.collections[n.id].indexes))
}

// A checkpoint of one daemon leaves the feed to the others.
func TestSharedFeedIsKept(t *testing.T) {
	h := newHouse(t)
	n := h.neighbour(0)
	for range 3 {
		r := h.write("a", readable("user:me"), "harbour")
		n.await(r.Epoch)
		r = h.setAccess("a", readable("user:you"))
		n.await(r.Epoch)
	}
	changes, err := h.store.Changes(t.Context(), 0, 1000)
	require.NoError(t, err)
	require.EqualValues(t, 1, changes[0].Epoch)
}
