package retrieve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/store"
)

const patience = time.Minute // for what takes milliseconds

// recovered waits until the follower has no failure.
func (h *house) recovered() {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.serving.Ready() == nil }, patience, time.Millisecond)
}

// flakyHouse has one index, which fails when told so.
func flakyHouse(t *testing.T) (*house, *flaky) {
	h := newHouse(t)
	f := &flaky{}
	h.wrapIndex = func(ix index.Index) index.Index {
		f.Index = ix
		return f
	}
	h.reopen()
	return h, f
}

func TestAFailedApplyIsSaidAndTriedAgain(t *testing.T) {
	h, f := flakyHouse(t)
	h.write("a", readable("user:me"), "harbour")
	f.applies.Store(true)

	r := h.put("b", readable("user:me"), "harbour")
	err := h.serving.Await(t.Context(), r.Epoch)
	require.ErrorIs(t, err, errInjected)
	require.ErrorIs(t, err, ErrBehind)
	require.ErrorIs(t, h.serving.Ready(), errInjected)
	require.Equal(t, []string{"a"}, keysOf(h.search(person("me"), Hybrid, "harbour", 5)), "what was searchable stays so")

	revoked := h.setAccess("a", readable("user:other"))
	require.ErrorIs(t, h.serving.Await(t.Context(), revoked.Epoch), errInjected, "a revocation is not acknowledged")
	require.Empty(t, keysOf(h.search(person("me"), Hybrid, "harbour", 5)), "and yet it holds")

	f.applies.Store(false)
	h.recovered()
	h.await(revoked.Epoch)
	require.Equal(t, []string{"b"}, keysOf(h.search(person("me"), Hybrid, "harbour", 5)))
	require.Equal(t, 1, h.search(person("me"), Hybrid, "harbour", 5).Visible)
}

// A checkpoint that failed is tried again by itself: no write has to come first,
// and none is refused meanwhile for longer than that takes.
func TestAFailedCheckpointIsTriedAgain(t *testing.T) {
	h, f := flakyHouse(t)
	h.flushEvery(3)
	f.flushes.Store(true)
	for i := range 3 {
		h.put(fmt.Sprint(i), readable(), "harbour")
	}
	require.Eventually(t, func() bool { return f.failed.Load() >= 2 }, patience, time.Millisecond)
	require.ErrorIs(t, h.serving.Ready(), errInjected)
	require.Len(t, h.search(person("me"), Sparse, "harbour", 5).Results, 3, "what was applied is searchable")

	f.flushes.Store(false)
	h.recovered()
	h.write("later", readable(), "harbour")
	require.Len(t, h.search(person("me"), Sparse, "harbour", 5).Results, 4)
}

func TestCheckpointsTrimTheFeed(t *testing.T) {
	h := newHouse(t)
	h.flushEvery(5)
	for i := range 20 {
		h.write(fmt.Sprint(i), readable(), "harbour")
	}
	h.write("last", readable(), "harbour")
	_, err := h.store.Changes(t.Context(), 0, 1)
	require.ErrorIs(t, err, store.ErrFeedTrimmed)
	h.reopen()
	require.NotContains(t, h.opened, true, "nothing is built again")
	require.Len(t, h.search(person("me"), Sparse, "harbour", 50).Results, 21)
}

// answers are the responses to a few queries, to the last bit.
func (h *house) answers() string {
	h.t.Helper()
	all := ""
	for _, strategy := range strategies {
		for _, query := range []string{"harbour", "harbour 7 south", "tide"} {
			all += bytesOf(h.t, h.search(person("me"), strategy, query, 30)) + "\n"
		}
	}
	return all
}

// fill writes, replaces and deletes.
func (h *house) fill(prefix string) {
	h.t.Helper()
	for i := range 40 {
		h.put(fmt.Sprint(prefix, i), readable("user:me"), fmt.Sprint("harbour north ", i), fmt.Sprint("tide south ", i))
	}
	for i := range 10 {
		h.put(fmt.Sprint(prefix, i), readable("user:me"), fmt.Sprint("harbour anew ", i))
		h.remove(fmt.Sprint(prefix, i+10))
		h.setAccess(fmt.Sprint(prefix, i+20), readable("user:other"))
	}
	h.awaitAll()
}

// A rebuild needs nothing but the store: Serving has no embedder.
func TestALostIndexIsBuiltAgainBitForBit(t *testing.T) {
	h := newHouse(t)
	h.fill("d")
	before := h.answers()
	h.close()
	h.indexFS = vfs.NewMem()
	texts := h.embedder.texts
	h.open()
	require.Equal(t, texts, h.embedder.texts)
	require.Equal(t, before, h.answers())
}

func TestAnIndexThatTheFeedNoLongerReachesIsBuiltAgain(t *testing.T) {
	h := newHouse(t)
	h.fill("d")
	h.close()
	h.fill("e")
	epoch, err := h.store.Epoch(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.store.Trim(t.Context(), epoch))
	h.opened = nil
	h.open()
	require.Contains(t, h.opened, true)
	after := h.answers()
	require.Contains(t, after, `"Key":"e`)

	h.close()
	h.indexFS = vfs.NewMem()
	h.open()
	require.Equal(t, h.answers(), after)
}

func TestAnIndexThatTheFeedReachesCatchesUp(t *testing.T) {
	h := newHouse(t)
	h.fill("d")
	h.close()
	h.fill("e")
	h.fill("f")
	h.opened = nil
	h.open()
	require.NotContains(t, h.opened, true)
	after := h.answers()
	h.close()
	h.indexFS = vfs.NewMem()
	h.open()
	require.Equal(t, h.answers(), after)
}

// A store that was restored from a backup lacks what its index has seen.
func TestAnIndexAheadOfTheStoreIsBuiltAgain(t *testing.T) {
	h := newHouse(t)
	h.fill("d")
	before := h.answers()
	h.close()
	require.NoError(t, h.store.Close())
	backup := vfs.NewMem()
	_, err := vfs.Clone(h.storeFS, backup, "store", "store", vfs.CloneSync)
	require.NoError(t, err)
	h.openStore()
	h.open()
	h.fill("later")
	h.close()
	require.NoError(t, h.store.Close())

	h.storeFS = backup
	h.openStore()
	h.opened = nil
	h.open()
	require.Contains(t, h.opened, true)
	require.Equal(t, before, h.answers())
}

func TestPoliciesChangeWhatIsVisible(t *testing.T) {
	h := newHouse(t)
	access := readable()
	access.Attributes = filter.Attributes{"level": "secret"}
	h.write("secret", access, "harbour")
	h.write("plain", readable("user:me"), "harbour")
	require.Len(t, h.search(person("me"), Sparse, "harbour", 5).Results, 2)

	const schema = `
		entity User = { tenant: String };
		entity Document = { tenant: String, level?: String };
		action read appliesTo { principal: User, resource: Document };`
	forbid, err := filter.ParsePolicies(schema, map[string]string{
		"a.cedar": `permit (principal, action == Action::"read", resource) when { principal.tenant == resource.tenant };`,
		"b.cedar": `forbid (principal, action == Action::"read", resource) when { resource has level && resource.level == "secret" };`,
	})
	require.NoError(t, err)
	h.setPolicies(forbid)
	for _, strategy := range strategies {
		r := h.search(person("me"), strategy, "harbour", 5)
		require.Equal(t, []string{"plain"}, keysOf(r))
		require.Equal(t, 1, r.Visible)
	}
	require.Equal(t, []string{"plain"}, h.list(person("me"), 5))

	nothing, err := filter.ParsePolicies("", nil)
	require.NoError(t, err)
	h.setPolicies(nothing)
	require.Zero(t, h.search(person("me"), Sparse, "harbour", 5).Visible)
	h.reopen()
	require.Zero(t, h.search(person("me"), Sparse, "harbour", 5).Visible)
	h.setPolicies(starter(t))
	require.Equal(t, 2, h.search(person("me"), Sparse, "harbour", 5).Visible)
}

// A collection that appears while documents are written to it.
func TestCollectionsAppear(t *testing.T) {
	h := newHouse(t)
	for i := range 20 {
		name := fmt.Sprint("c", i)
		c, _, err := h.store.CreateCollection(t.Context(), tenant, name, store.Settings{Analyzer: "english"})
		require.NoError(t, err)
		r, err := h.store.Commit(t.Context(), c.ID, version("a", readable(), "harbour"))
		require.NoError(t, err)
		h.await(r.Epoch)
		q := h.request(person("me"), Hybrid, "harbour", 5)
		q.Collection = name
		response, err := h.engine.Search(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, response.Results, 1)

		id, known := h.serving.CollectionID(tenant, name)
		require.True(t, known)
		require.Equal(t, c.ID, id)
		_, known = h.serving.CollectionID("another", name)
		require.False(t, known)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	h := newHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.serving.Await(ctx, 1<<40), context.Canceled)
}

func TestCloseEndsWaits(t *testing.T) {
	h := newHouse(t)
	waiting := make(chan error)
	serving := h.serving
	for range 8 {
		go func() { waiting <- serving.Await(context.Background(), 1<<40) }()
	}
	h.close()
	for range 8 {
		require.ErrorIs(t, <-waiting, ErrStopped)
	}
	require.ErrorIs(t, serving.Await(context.Background(), 1<<40), ErrStopped)
}

// Writers that go on while Serving closes lose nothing: what they committed is
// found by the next one.
func TestCloseDuringWrites(t *testing.T) {
	h := newHouse(t)
	var writing sync.WaitGroup
	started := make(chan struct{}, 4)
	serving := h.serving
	for w := range 4 {
		writing.Go(func() {
			for i := range 50 {
				r, err := h.store.Commit(context.Background(), h.id, version(fmt.Sprintf("%d/%d", w, i), readable(), "harbour"))
				if err != nil {
					t.Errorf("writing: %v", err)
					return
				}
				if err := serving.Await(context.Background(), r.Epoch); err != nil && !errors.Is(err, ErrStopped) {
					t.Errorf("waiting: %v", err)
				}
				if i == 10 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	h.close()
	writing.Wait()
	h.open()
	require.Len(t, h.list(person("me"), 1000), 200)
	require.Equal(t, 200, h.search(person("me"), Sparse, "harbour", 100).Visible)
}

// After a crash at any moment an index and a view are those of the store.
func TestServingAfterACrash(t *testing.T) {
	h := newHouse(t)
	h.close()
	require.NoError(t, h.store.Close())
	h.storeFS, h.indexFS = vfs.NewCrashableMem(), vfs.NewCrashableMem()
	h.openStore()
	h.setPolicies(starter(t))
	h.epochsPerFlush = 7
	h.open()
	h.id = h.collection(tenant, library)
	for round := range 4 {
		h.fill(fmt.Sprint("r", round, "-"))
		storeFS, indexFS := h.storeFS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{}), h.indexFS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
		want := h.answers()
		h.close()
		require.NoError(t, h.store.Close())
		h.storeFS, h.indexFS = storeFS, indexFS
		h.openStore()
		h.open()
		require.Equal(t, want, h.answers(), "round %d", round)
	}
}

// Vectors of two models are never compared: the daemon says so at its start.
func TestDocumentsOfAnotherModelAreRefused(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(), "harbour")
	h.close()

	_, err := NewServing(t.Context(), h.store, "another/1", h.openIndex, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, ErrOtherModel)
	require.ErrorContains(t, err, `document "a"`)
	require.ErrorContains(t, err, "precision")

	h.open()
	require.Len(t, h.search(person("me"), Hybrid, "harbour", 5).Results, 1)
}
