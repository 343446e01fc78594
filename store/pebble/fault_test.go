package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/store"
)

// fullDiskStride is a prime: what repeats in the operations is not skipped.
const fullDiskStride = 97

// fullDisk lets some writes through and then fails: for good, or once.
type fullDisk struct {
	left   atomic.Int64
	once   bool
	failed atomic.Int64
}

func (d *fullDisk) String() string { return "full disk" }

func (d *fullDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRename, errorfs.OpMkdirAll, errorfs.OpFilePreallocate,
		errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
	default:
		return nil
	}
	if left := d.left.Add(-1); left == -1 || left < 0 && !d.once {
		d.failed.Add(1)
		return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
	}
	return nil
}

// The disk becomes full at every operation in turn. Whatever was under way then,
// the process lives, nobody hangs, the error says what happened, and with room
// made everything acknowledged is there.
// With -short at every 97th operation, from a random one on.
func TestFullDisk(t *testing.T) {
	first, stride := 0, 1
	if testing.Short() {
		stride = fullDiskStride
		first = rand.IntN(stride)
		t.Logf("operations %d, %d, …", first, first+stride)
	}
	for _, once := range []bool{false, true} {
		t.Run(fmt.Sprint("once=", once), func(t *testing.T) {
			n := first
			for ; ; n += stride {
				disk := &fullDisk{once: once}
				disk.left.Store(int64(n))
				fullDiskRun(t, disk)
				if t.Failed() {
					t.Fatalf("at operation %d", n)
				}
				if disk.failed.Load() == 0 {
					break
				}
			}
			t.Logf("%d operations failed in turn", (n-first)/stride)
			require.Greater(t, n, 30)
		})
	}
}

func fullDiskRun(t *testing.T, disk *fullDisk) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	files := vfs.NewMem()
	var acked []*store.Version
	s, err := Open("data", Options{FS: errorfs.Wrap(files, disk), memTableSize: 16 << 10})
	if err == nil {
		acked, err = fillDisk(ctx, s, 12) // enough to rotate the log
		if errors.Is(err, store.ErrFailed) {
			requireFailed(ctx, t, s)
		}
		err = errors.Join(err, s.Close())
	}
	if disk.failed.Load() > 0 {
		require.ErrorIs(t, err, syscall.ENOSPC)
	} else {
		require.NoError(t, err)
	}
	s, err = Open("data", Options{FS: files})
	require.NoError(t, err)
	requireSound(t, s)
	for _, v := range acked {
		require.Equal(t, v, readVersion(t, s, 1, v.Key))
	}
	require.NoError(t, s.Close())
}

// fillDisk commits n documents and returns the acknowledged ones.
func fillDisk(ctx context.Context, s *Store, n int) (acked []*store.Version, err error) {
	c, _, err := s.CreateCollection(ctx, "t", "c", store.Settings{})
	if err != nil {
		return nil, err
	}
	for i := range n {
		v := testVersion(fmt.Sprint(i), strings.Repeat(fmt.Sprint(i, " text "), 100), 150)
		if _, err = s.Commit(ctx, c.ID, v); err != nil {
			return acked, err
		}
		acked = append(acked, &v)
	}
	return acked, nil
}

// requireFailed makes every call and wants each to say why it does nothing.
func requireFailed(ctx context.Context, t *testing.T, s *Store) {
	t.Helper()
	for name, call := range map[string]func() error{
		"Epoch":            func() error { _, err := s.Epoch(ctx); return err },
		"WaitChange":       func() error { return s.WaitChange(ctx, 1<<40) },
		"Changes":          func() error { _, err := s.Changes(ctx, 0, 1); return err },
		"Lookup":           func() error { _, err := s.Lookup(ctx, 1, "0"); return err },
		"Records":          func() error { _, err := s.Records(ctx, 1, []uint32{0}); return err },
		"Content":          func() error { _, err := s.Content(ctx, 1, 0, true); return err },
		"Collections":      func() error { _, err := s.Collections(ctx); return err },
		"Policies":         func() error { _, err := s.Policies(ctx); return err },
		"Commit":           func() error { _, err := s.Commit(ctx, 1, testVersion("late", "late", 1)); return err },
		"Delete":           func() error { _, err := s.Delete(ctx, 1, "0"); return err },
		"Trim":             func() error { return s.Trim(ctx, 1) },
		"SetPolicies":      func() error { _, _, err := s.SetPolicies(ctx, store.PolicySource{Schema: "s"}); return err },
		"CreateCollection": func() error { _, _, err := s.CreateCollection(ctx, "t", "late", store.Settings{}); return err },
		"SetAccess": func() error {
			_, err := s.SetAccess(ctx, 1, "0", func(a filter.Access) (filter.Access, error) { return a, nil })
			return err
		},
		"Check": func() error { return s.Check(ctx, func(store.Fault) {}) },
	} {
		err := call()
		require.ErrorIs(t, err, store.ErrFailed, name)
		require.ErrorIs(t, err, syscall.ENOSPC, name)
	}
}

// A failed write releases those who wait, and those who wait for them.
func TestFullDiskReleasesWaiters(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	disk := &fullDisk{}
	disk.left.Store(1 << 40)
	s, err := Open("data", Options{FS: errorfs.Wrap(vfs.NewMem(), disk)})
	require.NoError(t, err)
	c, _, err := s.CreateCollection(ctx, "t", "c", store.Settings{})
	require.NoError(t, err)
	outcomes := make(chan error)
	for i := range 8 {
		go func() {
			for n := 0; ; n++ {
				if _, err := s.Commit(ctx, c.ID, testVersion(fmt.Sprint(i), fmt.Sprint(n), 1)); err != nil {
					outcomes <- err
					return
				}
			}
		}()
	}
	go func() { outcomes <- s.WaitChange(ctx, 1<<40) }()
	require.NoError(t, s.WaitChange(ctx, 20))
	disk.left.Store(0)
	for range 9 {
		require.ErrorIs(t, <-outcomes, store.ErrFailed)
	}
	require.ErrorIs(t, s.Close(), syscall.ENOSPC)
	require.ErrorIs(t, s.Close(), store.ErrClosed)
}

// A failed read is the error of that call only.
func TestReadErrors(t *testing.T) {
	files := vfs.NewMem()
	s, err := Open("data", Options{FS: files})
	require.NoError(t, err)
	acked, err := fillDisk(t.Context(), s, 400)
	require.NoError(t, err)
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.Close())

	broken := errors.New("the disk is broken")
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") {
			return broken
		}
		return nil
	})}
	s, err = Open("data", Options{FS: errorfs.Wrap(files, toggle)})
	require.NoError(t, err)
	toggle.On()
	_, err = s.Content(t.Context(), 1, 250, true)
	require.ErrorIs(t, err, broken)
	_, err = s.Records(t.Context(), 1, []uint32{250})
	require.ErrorIs(t, err, broken)
	for _, err = range s.Scan(t.Context(), 1, 250) {
		require.ErrorIs(t, err, broken)
	}
	_, err = s.Commit(t.Context(), 1, *acked[250])
	require.ErrorIs(t, err, broken)
	toggle.Off()
	require.Equal(t, acked[250], readVersion(t, s, 1, "250"))
	requireSound(t, s)
	require.NoError(t, s.Close())
}

// A read that fails in between is no record that is not there, whichever it is.
func TestNoReadErrorHidesARecord(t *testing.T) {
	files := vfs.NewMem()
	s, err := Open("data", Options{FS: files})
	require.NoError(t, err)
	_, err = fillDisk(t.Context(), s, 400)
	require.NoError(t, err)
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.Close())

	broken, failures := errors.New("the disk is broken"), 0
	for n, failed := int64(1), true; failed; n++ {
		var armed atomic.Bool
		var reads atomic.Int64
		s, err := Open("data", Options{FS: errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if armed.Load() && op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") && reads.Add(1) == n {
				return broken
			}
			return nil
		}))})
		require.NoError(t, err)
		armed.Store(true)
		records, err := s.Records(t.Context(), 1, []uint32{0, 100, 200, 300, 399})
		armed.Store(false)
		// Pebble's own goroutines read too: the read that failed may have been theirs.
		if failed = reads.Load() >= n; failed && err != nil {
			require.ErrorIs(t, err, broken, "read %d", n)
			failures++
		} else {
			require.NoError(t, err)
			require.Len(t, records, 5, "read %d", n)
		}
		require.NoError(t, s.Close())
	}
	require.Positive(t, failures)
}
