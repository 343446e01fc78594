package pebble

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sluice/store"
)

// A checkpoint holds what was acknowledged before it and nothing later, whatever
// a crash does right after it.
func TestCheckpoint(t *testing.T) {
	const seed = 5
	ctx, files := t.Context(), vfs.NewCrashableMem()
	s, err := Open("data", Options{FS: files, memTableSize: 16 << 10})
	require.NoError(t, err)
	acked, err := fillDisk(ctx, s, 12)
	require.NoError(t, err)
	before, err := s.Epoch(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Checkpoint(ctx, "copy"))
	require.ErrorIs(t, s.Checkpoint(ctx, "copy"), fs.ErrExist)
	crashed := files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 0))})
	_, _, err = s.CreateCollection(ctx, "t", "later", store.Settings{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Checkpoint(ctx, "closed"), store.ErrClosed)

	copied, err := Open("copy", Options{FS: crashed})
	require.NoError(t, err, "seed %d", seed)
	epoch, err := copied.Epoch(ctx)
	require.NoError(t, err)
	require.Equal(t, before, epoch)
	collections, err := copied.Collections(ctx)
	require.NoError(t, err)
	for _, v := range acked {
		_, err := copied.Lookup(ctx, collections[0].ID, v.Key)
		require.NoError(t, err, v.Key)
	}
	require.NoError(t, copied.Check(ctx, func(f store.Fault) { t.Error(f) }))
	require.NoError(t, copied.Close())

	reader, err := Open("copy", Options{FS: crashed, ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, reader.Checkpoint(ctx, "of a reader"), store.ErrReadOnly)
	require.NoError(t, reader.Close())
}

// A disk, say another one, that becomes full during a checkpoint fails it, and not the store.
func TestFullDiskDuringACheckpoint(t *testing.T) {
	failed := 0
	for n := 0; ; n++ {
		disk := &fullDisk{}
		disk.left.Store(int64(n))
		full := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.HasPrefix(op.Path, "copy") {
				return disk.MaybeError(op)
			}
			return nil
		})
		s, err := Open("data", Options{FS: errorfs.Wrap(vfs.NewMem(), full), memTableSize: 16 << 10})
		require.NoError(t, err)
		_, err = fillDisk(t.Context(), s, 12)
		require.NoError(t, err)
		err = s.Checkpoint(t.Context(), "copy")
		if err == nil {
			require.NoError(t, s.Close())
			break
		}
		failed++
		require.NotErrorIs(t, err, store.ErrFailed, "operation %d", n)
		_, _, err = s.CreateCollection(t.Context(), "t", fmt.Sprint("later", n), store.Settings{})
		require.NoError(t, err, "operation %d", n)
		require.NoError(t, s.Close())
	}
	require.Greater(t, failed, 5)
}
