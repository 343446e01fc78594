package local

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/index"
	"sluice/index/conformance"
)

const (
	testDims     = 4
	testOrdinals = 30
)

// state is all that an index answers: every row and every score.
type state struct{ dense, lexical []index.Hit }

func stateOf(t *testing.T, ix *Index) state {
	t.Helper()
	var all []uint32
	for i := range uint32(testOrdinals) {
		all = append(all, i)
	}
	r, err := ix.Reader()
	require.NoError(t, err)
	defer r.Close()
	dense, err := r.Dense(t.Context(), filter.SetOf(all...), []float32{0.5, -0.5, 0.5, 0.5}, 1<<20)
	require.NoError(t, err)
	lexical, err := r.Lexical(t.Context(), filter.SetOf(all...), "alpha beta running limits 42", 1<<20)
	require.NoError(t, err)
	return state{dense, lexical}
}

func testOptions(t testing.TB, fs vfs.FS) Options {
	return Options{
		Dimensions:  testDims,
		Analyzer:    english(t),
		Model:       "m",
		FreshRows:   40,
		FS:          fs,
		Log:         slog.New(slog.DiscardHandler),
		manualMerge: true,
		codedRows:   8,
		listedRows:  16,
	}
}

// crash is the disk as a power loss at some moment left it.
type crash struct {
	disk  *vfs.MemFS
	least uint64 // the epoch that was acknowledged as durable by then
	op    errorfs.Op
}

// TestCrash cuts the power before random operations on the disk, with random
// shares of what was not synced. What comes back is exactly the state of one
// epoch, at least the acknowledged one.
func TestCrash(t *testing.T) {
	for seed := range uint64(25) {
		var crashes []crash
		var ix *Index
		disk, rng := vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, 2))
		hook := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && ix != nil && rng.IntN(4) == 0 {
				cut := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 100}[rng.IntN(3)], RNG: rng}
				crashes = append(crashes, crash{disk.CrashClone(cut), ix.Applied(), op})
			}
			return nil
		})
		ix, err := Open("index", testOptions(t, errorfs.Wrap(disk, hook)))
		require.NoError(t, err)
		history := writeHistory(t, ix, conformance.NewCorpus(seed, testDims))
		require.NoError(t, ix.Close())
		require.Greater(t, len(crashes), 20)
		for _, c := range crashes {
			requireRecovery(t, c, history, seed)
		}
	}
}

// TestCrashWhileLinking cuts the power before every operation of Link, and
// after it. The index is what it was; the copy is that too, or has no manifest.
func TestCrashWhileLinking(t *testing.T) {
	for seed := range uint64(10) {
		var crashes []crash
		linking, disk, rng := false, vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, 4))
		clone := func(op errorfs.Op) {
			cut := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 100}[rng.IntN(3)], RNG: rng}
			crashes = append(crashes, crash{disk: disk.CrashClone(cut), op: op})
		}
		hook := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if linking && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				clone(op)
			}
			return nil
		})
		files := errorfs.Wrap(disk, hook)
		ix, err := Open("index", testOptions(t, files))
		require.NoError(t, err)
		history := writeHistory(t, ix, conformance.NewCorpus(seed, testDims))
		require.NoError(t, ix.Flush(t.Context()))
		want := history[ix.Applied()]
		linking = true
		require.NoError(t, Link("index", "copy", files))
		linking = false
		require.Greater(t, len(crashes), 4)
		clone(errorfs.Op{})
		require.NoError(t, ix.Close())
		whole := 0
		for _, c := range crashes {
			requireState(t, "index", c, want, seed)
			if _, err := c.disk.Stat("copy/" + manifestName); err == nil {
				requireState(t, "copy", c, want, seed)
				whole++
			}
		}
		require.Less(t, whole, len(crashes), "the manifest comes last")
	}
}

func requireState(t *testing.T, dir string, c crash, want state, seed uint64) {
	t.Helper()
	_, err := Check(dir, c.disk)
	require.NoError(t, err, "seed %d, crash at %v", seed, c.op)
	ix, err := Open(dir, testOptions(t, c.disk))
	require.NoError(t, err, "seed %d, crash at %v", seed, c.op)
	require.Equal(t, want, stateOf(t, ix), "seed %d, crash at %v", seed, c.op)
	require.NoError(t, ix.Close())
}

// writeHistory applies, flushes and merges at random and returns the state of
// every epoch.
func writeHistory(t *testing.T, ix *Index, c *conformance.Corpus) []state {
	t.Helper()
	history := []state{stateOf(t, ix)}
	for epoch := uint64(1); epoch <= 60; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		history = append(history, stateOf(t, ix))
		if c.IntN(3) == 0 {
			require.NoError(t, ix.Flush(t.Context()))
			require.Equal(t, epoch, ix.Applied())
		}
		if c.IntN(4) == 0 {
			require.NoError(t, ix.mergeAll(t.Context(), ingesting))
			require.Equal(t, history[epoch], stateOf(t, ix))
		}
	}
	return history
}

func requireRecovery(t *testing.T, c crash, history []state, seed uint64) {
	t.Helper()
	report, err := Check("index", c.disk)
	require.NoError(t, err, "seed %d, crash at %v", seed, c.op)
	ix, err := Open("index", testOptions(t, c.disk))
	require.NoError(t, err, "seed %d, crash at %v", seed, c.op)
	defer ix.Close() //nolint:errcheck
	require.GreaterOrEqual(t, ix.Applied(), c.least, "seed %d, crash at %v", seed, c.op)
	require.Equal(t, report.Epoch, ix.Applied())
	require.Equal(t, history[ix.Applied()], stateOf(t, ix), "seed %d, crash at %v", seed, c.op)
	requireTidy(t, ix, c.disk)
}

// requireTidy: no file lies about that the manifest does not name.
func requireTidy(t *testing.T, ix *Index, disk vfs.FS) {
	t.Helper()
	want := []string{manifestName}
	for _, p := range ix.current.parts {
		if p.seg.id != 0 {
			want = append(want, segmentName(p.seg.id))
			if p.seg.codes != nil {
				want = append(want, codesName(p.seg.id))
			}
		}
	}
	names, err := disk.List("index")
	require.NoError(t, err)
	require.ElementsMatch(t, want, names)
}

// TestDiskFull lets random writes fail. A failed Apply has applied nothing, a
// failed Flush or merge has lost nothing, and once there is room all is well.
func TestDiskFull(t *testing.T) {
	for seed := range uint64(25) {
		failing, rng := false, rand.New(rand.NewPCG(seed, 3))
		disk := vfs.NewMem()
		full := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if failing && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && rng.IntN(5) == 0 {
				return syscall.ENOSPC
			}
			return nil
		})
		ix, err := Open("index", testOptions(t, errorfs.Wrap(disk, full)))
		require.NoError(t, err)
		c, failures, before := conformance.NewCorpus(seed, testDims), 0, stateOf(t, ix)
		failing = true
		for epoch := uint64(1); epoch <= 60; epoch++ {
			err := ix.Apply(t.Context(), c.Batch(epoch, testOrdinals))
			after := stateOf(t, ix)
			if err != nil {
				require.Equal(t, before, after, "seed %d, epoch %d", seed, epoch)
			}
			for _, err := range []error{err, ix.Flush(t.Context()), ix.mergeAll(t.Context(), ingesting)} {
				if err != nil {
					failures++
					require.ErrorIs(t, err, syscall.ENOSPC)
				}
			}
			require.Equal(t, after, stateOf(t, ix), "seed %d, epoch %d", seed, epoch)
			before = after
		}
		require.Greater(t, failures, 5)
		failing = false
		require.NoError(t, ix.Apply(t.Context(), index.Batch{Epoch: 61}))
		require.NoError(t, ix.Flush(t.Context()))
		requireTidy(t, ix, disk)
		require.NoError(t, ix.Close())
		ix, err = Open("index", testOptions(t, disk))
		require.NoError(t, err)
		require.Equal(t, before, stateOf(t, ix), "seed %d", seed)
		_, err = Check("index", disk)
		require.NoError(t, err)
		require.NoError(t, ix.Close())
	}
}

// flushed returns a disk with an index of several segments and deletions.
func flushed(t *testing.T) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewMem()
	ix, err := Open("index", testOptions(t, disk))
	require.NoError(t, err)
	c := conformance.NewCorpus(1, testDims)
	for epoch := uint64(1); epoch <= 6; epoch++ {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(epoch, testOrdinals)))
		require.NoError(t, ix.Flush(t.Context()))
	}
	require.Greater(t, ix.Stats().Segments, 2)
	require.NoError(t, ix.Close())
	return disk
}

func edit(t *testing.T, disk *vfs.MemFS, name string, change func([]byte) []byte) {
	t.Helper()
	path := disk.PathJoin("index", name)
	data, _, err := readFile(disk, path, slog.Default())
	require.NoError(t, err)
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(change(data))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func firstSegment(t *testing.T, disk *vfs.MemFS) string {
	t.Helper()
	return firstFile(t, disk, segmentSuffix)
}

func firstFile(t *testing.T, disk *vfs.MemFS, suffix string) string {
	t.Helper()
	names, err := disk.List("index")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, suffix) })
	require.NotEmpty(t, names)
	return slices.Min(names)
}

// TestDamage flips bits, cuts and removes files. Check finds every one of them.
// Open finds all but those in vectors and postings. Codes may be missing.
func TestDamage(t *testing.T) {
	disk := flushed(t)
	for _, name := range []string{manifestName, firstSegment(t, disk), firstFile(t, disk, codesSuffix)} {
		data, _, err := readFile(disk, "index/"+name, slog.Default())
		require.NoError(t, err)
		for at := range data {
			edit(t, disk, name, func([]byte) []byte {
				flipped := slices.Clone(data)
				flipped[at] ^= 0x10
				return flipped
			})
			_, err := Check("index", disk)
			require.Error(t, err, "%s, byte %d", name, at)
			if ix, err := Open("index", testOptions(t, disk)); err == nil {
				require.NoError(t, ix.Close())
				require.Equal(t, firstSegment(t, disk), name, "byte %d", at)
			} else if !errors.Is(err, index.ErrNewerFormat) {
				require.ErrorIs(t, err, index.ErrRebuild, "%s, byte %d", name, at)
			}
		}
		edit(t, disk, name, func([]byte) []byte { return data })
		for _, size := range []int{0, 1, 15, len(data) / 2, len(data) - 1} {
			disk := flushed(t)
			edit(t, disk, name, func(b []byte) []byte { return b[:size] })
			requireRebuild(t, disk)
		}
		disk := flushed(t)
		require.NoError(t, disk.Remove("index/"+name))
		if strings.HasSuffix(name, codesSuffix) {
			_, err := Check("index", disk)
			require.NoError(t, err)
			continue
		}
		requireRebuild(t, disk)
	}
}

func requireRebuild(t *testing.T, disk vfs.FS) {
	t.Helper()
	_, err := Check("index", disk)
	require.ErrorIs(t, err, index.ErrRebuild)
	_, err = Open("index", testOptions(t, disk))
	require.ErrorIs(t, err, index.ErrRebuild)
}

func TestOtherSettings(t *testing.T) {
	disk := flushed(t)
	for name, change := range map[string]func(*Options){
		"model":      func(o *Options) { o.Model = "other" },
		"dimensions": func(o *Options) { o.Dimensions++ },
		"analyzer":   func(o *Options) { o.Analyzer = analyzerNamed(t, "standard") },
	} {
		options := testOptions(t, disk)
		change(&options)
		_, err := Open("index", options)
		require.ErrorIs(t, err, index.ErrRebuild, name)
	}
}

// TestNewerFormat: what a later version wrote is refused, and left as it is.
func TestNewerFormat(t *testing.T) {
	for _, name := range []string{manifestName, firstSegment(t, flushed(t)), firstFile(t, flushed(t), codesSuffix)} {
		disk := flushed(t)
		edit(t, disk, name, func(b []byte) []byte { b[8]++; return b })
		_, err := Open("index", testOptions(t, disk))
		require.ErrorIs(t, err, index.ErrNewerFormat)
		edit(t, disk, name, func(b []byte) []byte { b[8]--; return b })
		ix, err := Open("index", testOptions(t, disk))
		require.NoError(t, err)
		require.NoError(t, ix.Close())
	}
}

// TestRebuildCutShort: batches without an epoch count only once a later one is durable.
func TestRebuildCutShort(t *testing.T) {
	disk, c := vfs.NewMem(), conformance.NewCorpus(4, testDims)
	ix, err := Open("index", testOptions(t, disk))
	require.NoError(t, err)
	empty := stateOf(t, ix)
	for range 10 {
		require.NoError(t, ix.Apply(t.Context(), c.Batch(0, testOrdinals)))
	}
	require.NoError(t, ix.Flush(t.Context()))
	require.NotEqual(t, empty, stateOf(t, ix))
	require.NoError(t, ix.Close())
	ix, err = Open("index", testOptions(t, disk))
	require.NoError(t, err)
	require.Zero(t, ix.Applied())
	require.Equal(t, empty, stateOf(t, ix))
	requireTidy(t, ix, disk)
	require.NoError(t, ix.Close())
}
