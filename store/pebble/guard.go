package pebble

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/store"
)

// guard stands between pebble and the file system. Pebble ends the process when
// a write to its log or manifest fails. The guard keeps such an error from it:
// it records the error, after which the store refuses everything, and parks the
// goroutine that met it, as well as each one that tries to write later. So the
// directory stays as it was at the failure, which is what the next open needs.
// Parked goroutines end with the process.
//
// Files outside the directory, those of a checkpoint, are not guarded: an error
// there is the checkpoint's.
type guard struct {
	vfs.FS
	dir      string
	underWay sync.RWMutex // held for reading by each write
	once     sync.Once
	failed   chan struct{} // closed when err is set
	err      error
}

func newGuard(fs vfs.FS, dir string) *guard {
	return &guard{FS: fs, dir: fs.PathJoin(dir), failed: make(chan struct{})}
}

// guards reports the store's own directory.
func (g *guard) guards(dir string) bool { return g.PathJoin(dir) == g.dir }

// failure returns what stopped the store, or nil.
func (g *guard) failure() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// fail stops the store. It does not return.
func (g *guard) fail(err error) {
	g.once.Do(func() {
		g.err = fmt.Errorf("%w: %w", store.ErrFailed, err)
		close(g.failed)
	})
	select {}
}

// write runs one write operation; it returns only if the operation succeeds.
func (g *guard) write(op func() error) error {
	g.underWay.RLock()
	err := g.failure()
	if err == nil {
		err = op()
	}
	g.underWay.RUnlock()
	if err != nil {
		g.fail(err)
	}
	return nil
}

// run calls f, which may be parked, and returns its error. After a failure it
// returns that, when the writes that were under way have ended.
func (g *guard) run(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-g.failed:
		g.underWay.Lock()
		defer g.underWay.Unlock()
		return g.err
	}
}

// Lock does nothing: the store holds the lock of the directory already.
func (g *guard) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Create makes the directory durable before it creates one of pebble's markers: a
// marker names the manifest in force, and must not survive a crash that its
// manifest, another new file, does not survive.
func (g *guard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !g.guards(g.PathDir(name)) {
		return g.FS.Create(name, category)
	}
	if strings.HasPrefix(g.PathBase(name), "marker.") {
		_ = g.write(func() error { return syncDir(g.FS, g.PathDir(name)) })
	}
	return g.create(func() (vfs.File, error) { return g.FS.Create(name, category) })
}

func (g *guard) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

func (g *guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil || !g.guards(name) {
		return f, err
	}
	return &guardedFile{f, g}, nil
}

func (g *guard) create(create func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := g.write(func() (err error) {
		f, err = create()
		return err
	})
	return &guardedFile{f, g}, err
}

func (g *guard) Rename(oldname, newname string) error {
	return g.write(func() error { return g.FS.Rename(oldname, newname) })
}

// Remove may fail: pebble copes, and the next open removes what is left.
func (g *guard) Remove(name string) (err error) {
	_ = g.write(func() error {
		err = g.FS.Remove(name)
		return nil
	})
	return err
}

// guardedFile is a file that pebble writes.
type guardedFile struct {
	vfs.File
	guard *guard
}

func (f *guardedFile) Write(p []byte) (n int, err error) {
	err = f.guard.write(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *guardedFile) WriteAt(p []byte, offset int64) (n int, err error) {
	err = f.guard.write(func() (err error) {
		n, err = f.File.WriteAt(p, offset)
		return err
	})
	return n, err
}

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	err = f.guard.write(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *guardedFile) Preallocate(offset, length int64) error {
	return f.guard.write(func() error { return f.File.Preallocate(offset, length) })
}

func (f *guardedFile) Sync() error     { return f.guard.write(f.File.Sync) }
func (f *guardedFile) SyncData() error { return f.guard.write(f.File.SyncData) }
func (f *guardedFile) Close() error    { return f.guard.write(f.File.Close) }
