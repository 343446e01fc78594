package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
)

func testPolicies(t *testing.T, f *fixture) {
	none, err := f.Policies(f.ctx)
	require.NoError(t, err)
	equal(t, store.PolicySource{}, none)
	f.collection("acme", "docs")
	sources := []store.PolicySource{
		{Schema: "s", Policies: map[string]string{"a.cedar": "permit", "b.cedar": "", "": "x"}},
		{Schema: "s", Policies: map[string]string{"a.cedarpermit": ""}},
		{Policies: map[string]string{"a.cedar": "permit"}},
		{},
	}
	for i, p := range sources {
		epoch, changed, err := f.SetPolicies(f.ctx, p)
		require.NoError(t, err)
		require.True(t, changed)
		require.EqualValues(t, 2+i, epoch)
		equal(t, []store.Change{{Epoch: epoch, Kind: store.PoliciesChanged}}, f.changes(epoch-1))
		again, changed, err := f.SetPolicies(f.ctx, p)
		require.NoError(t, err)
		require.False(t, changed)
		require.Equal(t, epoch, again)
		got, err := f.Policies(f.ctx)
		require.NoError(t, err)
		equal(t, p, got)
	}
}

func testChanges(t *testing.T, f *fixture) {
	require.Zero(t, f.epoch())
	require.Empty(t, f.changes(0))
	c := f.collection("acme", "docs")
	for i := range 9 {
		f.commit(c, version(fmt.Sprint(i), "text", 1))
	}
	all := f.changes(0)
	require.Len(t, all, 10)
	for i, change := range all {
		require.EqualValues(t, i+1, change.Epoch)
	}
	for after := range uint64(12) {
		for limit := 1; limit < 12; limit++ {
			want := all[min(int(after), len(all)):]
			want = want[:min(limit, len(want))]
			got, err := f.Changes(f.ctx, after, limit)
			require.NoError(t, err)
			require.True(t, slices.Equal(want, got), "after %d limit %d: %v", after, limit, got)
		}
	}
	_, err := f.Changes(f.ctx, 0, 0)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func testTrim(t *testing.T, f *fixture) {
	require.NoError(t, f.Trim(f.ctx, 100), "nothing to trim")
	c := f.collection("acme", "docs")
	for i := range 9 {
		f.commit(c, version(fmt.Sprint(i), "text", 1))
	}
	all := f.changes(0)
	for _, step := range []struct{ upTo, trimmed uint64 }{{0, 0}, {4, 4}, {4, 4}, {2, 4}, {7, 7}, {100, 10}} {
		require.NoError(t, f.Trim(f.ctx, step.upTo))
		require.EqualValues(t, 10, f.epoch())
		equal(t, len(all[step.trimmed:]), len(f.changes(step.trimmed)))
		if step.trimmed > 0 {
			_, err := f.Changes(f.ctx, step.trimmed-1, 10)
			require.ErrorIs(t, err, store.ErrFeedTrimmed)
		}
		f.verify()
	}
	r := f.commit(c, version("more", "text", 1))
	require.EqualValues(t, 11, r.Epoch)
	f.reopen()
	equal(t, []store.Change{{Epoch: 11, Kind: store.DocumentChanged, Collection: c, Ordinal: r.Ordinal}}, f.changes(10))
	_, err := f.Changes(f.ctx, 9, 10)
	require.ErrorIs(t, err, store.ErrFeedTrimmed)
	require.Len(t, f.scan(c, 0), 10)
}

func testWait(t *testing.T, f *fixture) {
	ctx, cancel := soon(f.ctx)
	defer cancel()
	c := f.collection("acme", "docs")
	require.NoError(t, f.WaitChange(ctx, 0))
	followers := make(chan error, 8)
	for range cap(followers) {
		go func() { followers <- follow(ctx, f, 20) }()
	}
	for i := range 19 {
		f.commit(c, version(fmt.Sprint(i), "text", 1))
	}
	for range cap(followers) {
		require.NoError(t, <-followers)
	}
	ended, end := context.WithCancel(ctx)
	waiting := make(chan error)
	go func() { waiting <- f.WaitChange(ended, 20) }()
	end()
	require.ErrorIs(t, <-waiting, context.Canceled)
}

// follow reads the feed to an epoch and checks that it comes whole and in order.
func follow(ctx context.Context, s store.Store, to uint64) error {
	for seen := uint64(0); seen < to; {
		if err := s.WaitChange(ctx, seen); err != nil {
			return err
		}
		changes, err := s.Changes(ctx, seen, 3)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			return fmt.Errorf("WaitChange(%d) returned and there is no change", seen)
		}
		for _, c := range changes {
			if seen++; c.Epoch != seen {
				return fmt.Errorf("epoch %d came where %d was due", c.Epoch, seen)
			}
		}
	}
	return nil
}

func testConcurrentCommits(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	const writers, rounds = 16, 20
	receipts := make([][]store.Receipt, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				key := fmt.Sprint("own ", w, " ", i)
				if i%2 == 1 {
					key = "shared"
				}
				r := f.commit(c, version(key, fmt.Sprint(w, " ", i), 1+i%3))
				epoch, err := f.Epoch(f.ctx)
				if err != nil || epoch < r.Epoch {
					t.Errorf("epoch %d (%v) after a receipt with epoch %d", epoch, err, r.Epoch)
				}
				receipts[w] = append(receipts[w], r)
			}
		})
	}
	group.Wait()
	all := slices.Concat(receipts...)
	slices.SortFunc(all, func(a, b store.Receipt) int { return int(a.Epoch) - int(b.Epoch) })
	require.Len(t, f.changes(1), len(all))
	row, shared := all[0].FirstRow, uint32(0)
	for i, r := range all {
		require.EqualValues(t, 2+i, r.Epoch, "one epoch each")
		require.GreaterOrEqual(t, r.FirstRow, row, "rows of their own")
		row = r.FirstRow + r.Rows
		if r.Key == "shared" {
			shared++
			require.Equal(t, shared, r.Version, "versions without a gap")
		}
	}
	require.Len(t, f.scan(c, 0), writers*rounds/2+1)
}

// calls is every method that takes a context, by name.
func calls(s store.Store, collection uint32) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"CreateCollection": func(ctx context.Context) error {
			_, _, err := s.CreateCollection(ctx, "t", "n", store.Settings{})
			return err
		},
		"Collection":  func(ctx context.Context) error { _, err := s.Collection(ctx, "acme", "docs"); return err },
		"Collections": func(ctx context.Context) error { _, err := s.Collections(ctx); return err },
		"Commit": func(ctx context.Context) error {
			_, err := s.Commit(ctx, collection, version("new", "text", 1))
			return err
		},
		"SetAccess": func(ctx context.Context) error {
			_, err := s.SetAccess(ctx, collection, "a", func(filter.Access) (filter.Access, error) { return readableBy("x"), nil })
			return err
		},
		"Delete":  func(ctx context.Context) error { _, err := s.Delete(ctx, collection, "a"); return err },
		"Lookup":  func(ctx context.Context) error { _, err := s.Lookup(ctx, collection, "a"); return err },
		"Records": func(ctx context.Context) error { _, err := s.Records(ctx, collection, []uint32{0}); return err },
		"Content": func(ctx context.Context) error { _, err := s.Content(ctx, collection, 0, true); return err },
		"Scan": func(ctx context.Context) (err error) {
			for _, err = range s.Scan(ctx, collection, 0) {
			}
			return err
		},
		"SetPolicies": func(ctx context.Context) error {
			_, _, err := s.SetPolicies(ctx, store.PolicySource{Schema: "x"})
			return err
		},
		"Policies":   func(ctx context.Context) error { _, err := s.Policies(ctx); return err },
		"Changes":    func(ctx context.Context) error { _, err := s.Changes(ctx, 0, 10); return err },
		"WaitChange": func(ctx context.Context) error { return s.WaitChange(ctx, 1000) },
		"Trim":       func(ctx context.Context) error { return s.Trim(ctx, 1) },
	}
}

func testContext(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	r := f.commit(c, version("a", "a text", 1))
	ended, end := context.WithCancel(f.ctx)
	end()
	for name, call := range calls(f, c) {
		require.ErrorIs(t, call(ended), context.Canceled, name)
	}
	require.Equal(t, r.Epoch, f.epoch(), "nothing was written")
	equal(t, []store.Record{r.Record}, f.scan(c, 0))
	require.Len(t, f.changes(0), 2)
}

func testClose(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	r := f.commit(c, version("a", "a text", 1))
	require.NoError(t, f.Close())
	for name, call := range calls(f, c) {
		require.ErrorIs(t, call(f.ctx), store.ErrClosed, name)
	}
	_, err := f.Epoch(f.ctx)
	require.ErrorIs(t, err, store.ErrClosed)
	require.ErrorIs(t, f.Close(), store.ErrClosed)
	f.Store = nil
	f.reopen()
	equal(t, []store.Record{r.Record}, f.scan(c, 0))
}

// Close lets what is under way come to its end, one way or the other.
func testCloseEndsWaits(t *testing.T, f *fixture) {
	ctx, cancel := soon(f.ctx)
	defer cancel()
	c := f.collection("acme", "docs")
	waiting, s := make(chan error), f.Store
	go func() { waiting <- s.WaitChange(ctx, 1<<40) }()
	acknowledged := make(chan []string)
	for w := range 4 {
		go func() {
			var keys []string
			for i := 0; ; i++ {
				key := fmt.Sprint(w, " ", i)
				if _, err := s.Commit(ctx, c, version(key, key, 1)); err != nil {
					acknowledged <- keys
					return
				}
				keys = append(keys, key)
			}
		}()
	}
	require.NoError(t, f.WaitChange(ctx, 20))
	require.NoError(t, f.Close())
	require.ErrorIs(t, <-waiting, store.ErrClosed)
	f.Store = nil
	f.reopen()
	for range 4 {
		for _, key := range <-acknowledged {
			_, err := f.Lookup(f.ctx, c, key)
			require.NoError(t, err, key)
		}
	}
	require.ErrorIs(t, s.Close(), store.ErrClosed)
}

func testReopen(t *testing.T, f *fixture) {
	c := f.collection("acme", "docs")
	v := version("a", "a text", 2)
	r := f.commit(c, v)
	f.commit(c, version("gone", "text", 1))
	f.delete(c, "gone")
	p := store.PolicySource{Schema: "s", Policies: map[string]string{"a": "b"}}
	_, _, err := f.SetPolicies(f.ctx, p)
	require.NoError(t, err)
	collections, err := f.Collections(f.ctx)
	require.NoError(t, err)
	changes := f.changes(0)
	for range 2 {
		f.reopen()
		require.EqualValues(t, 5, f.epoch())
		equal(t, changes, f.changes(0))
		equal(t, []store.Record{r.Record}, f.scan(c, 0))
		equal(t, contentOf(r.Record, v), f.content(c, r.Ordinal))
		got, err := f.Policies(f.ctx)
		require.NoError(t, err)
		equal(t, p, got)
		reopened, err := f.Collections(f.ctx)
		require.NoError(t, err)
		equal(t, collections, reopened)
		require.True(t, f.commit(c, v).Unchanged)
	}
}
