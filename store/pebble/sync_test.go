package pebble

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sluice/store"
)

// slowDisk holds up each sync of the log while it is on.
type slowDisk struct {
	errorfs.Toggle
	syncing, release chan struct{}
}

func newSlowDisk() *slowDisk {
	d := &slowDisk{syncing: make(chan struct{}), release: make(chan struct{})}
	d.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if strings.HasSuffix(op.Path, ".log") {
				d.syncing <- struct{}{}
				<-d.release
			}
		}
		return nil
	})
	return d
}

// While a write is not synced, nobody is told that it happened: not its writer,
// not the feed, not a later write that changes nothing.
func TestNothingUnsyncedIsAcknowledged(t *testing.T) {
	disk := newSlowDisk()
	s, err := Open("data", Options{FS: errorfs.Wrap(vfs.NewMem(), disk)})
	require.NoError(t, err)
	c, _, err := s.CreateCollection(t.Context(), "t", "c", store.Settings{})
	require.NoError(t, err)

	disk.On()
	impatient, leave := context.WithCancel(t.Context())
	outcomes := make(chan error)
	commit := func(ctx context.Context) {
		_, err := s.Commit(ctx, c.ID, testVersion("a", "text", 1))
		outcomes <- err
	}
	go commit(impatient)
	<-disk.syncing
	for readVersion(t, s, c.ID, "a") == nil { // applied beside the sync, a moment before or after its start
		runtime.Gosched()
	}
	epoch, err := s.Epoch(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, epoch)
	changes, err := s.Changes(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	leave()
	require.ErrorContains(t, <-outcomes, "may still happen")

	disk.Off()
	nothing := func() *write {
		return &write{ctx: t.Context(), plan: func(*txn) error { return nil }, done: make(chan error, 1)}
	}
	first, second := nothing(), nothing()
	s.writes <- first
	s.writes <- second // taken only when the committer is done with the first
	require.Empty(t, first.done, "a write that changes nothing waits for what it saw")
	disk.release <- struct{}{}
	require.NoError(t, <-first.done)
	require.NoError(t, <-second.done)
	epoch, err = s.Epoch(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, epoch)
	require.NoError(t, s.Close())
}

// What a view reads is of one moment.
func TestView(t *testing.T) {
	s, err := Open("data", Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	acked, err := fillDisk(t.Context(), s, 2)
	require.NoError(t, err)
	require.NoError(t, s.view(t.Context(), func(r pebble.Reader) error {
		before, err := lookup(r, 1, "1")
		require.NoError(t, err)
		next := *acked[1]
		next.Identity[0]++
		_, err = s.Commit(t.Context(), 1, next)
		require.NoError(t, err)
		after, err := lookup(r, 1, "1")
		require.NoError(t, err)
		require.Equal(t, before, after)
		return nil
	}))
	require.NoError(t, s.Close())
}
