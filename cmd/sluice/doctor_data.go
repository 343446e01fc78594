package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice/index/local"
	"sluice/model/hub"
	"sluice/store"
	"sluice/store/pebble"
)

const littleDisk = 1 << 30

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// directorySize is the bytes of the files below dir, as far as they can be read.
func directorySize(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}

// findModel is the folder of a model, without fetching it.
func findModel(name string) (string, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.Clean(name), nil
	}
	return hub.Find(name, hub.Options{})
}

func (e *examination) modelNames() (names []string) {
	for _, name := range []string{e.settings.Model, e.settings.Reranker, e.settings.Classifier} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (e *examination) model() {
	for _, name := range e.modelNames() {
		pull := "sluice model pull " + name
		dir, err := findModel(name)
		if errors.Is(err, hub.ErrUnknownModel) {
			e.fault("model", "a directory, or one of the names above", "%v", err)
			continue
		}
		if err != nil {
			e.warn("model", pull+" (the daemon does so at its start, where it reaches the hub)", "%s is not there yet: %v", name, err)
			continue
		}
		switch err := hub.Verify(dir); {
		case errors.Is(err, fs.ErrNotExist):
			e.warn("model", "", "%s: there is no record of what its files were, so they cannot be verified (%v)", dir, err)
		case err != nil:
			e.fault("model", "rm -r "+dir+" && "+pull, "%s is damaged: %v", dir, err)
		default:
			e.ok("model", "%s: every file is what was pulled", dir)
		}
	}
}

// data looks at the data directory: its permissions, its disk, what is in it.
func (e *examination) data(ctx context.Context) {
	dir := e.settings.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.ok("data", "%s is not there yet; the first start makes it", dir)
		dir = above(dir)
	case err != nil:
		e.fault("data", "let the daemon's user reach it", "%v", err)
		return
	case !info.IsDir():
		e.fault("data", "name a directory as data", "%s is no directory", dir)
		return
	case info.Mode().Perm()&0o007 != 0:
		e.warn("data", "chmod o= "+dir, "%s can be read by everybody on this machine (%s)", dir, info.Mode().Perm())
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		e.fault("data", "chown it to the daemon's user", "%s cannot be written by this user: %v", dir, err)
	}
	e.disk(dir)
	if e.settings.Store == "" && err == nil {
		e.store(ctx)
	}
}

// above is the nearest directory above that is there.
func above(dir string) string {
	for dir = filepath.Clean(dir); ; {
		parent := filepath.Dir(dir)
		if _, err := os.Stat(parent); err == nil || parent == dir {
			return parent
		}
		dir = parent
	}
}

// disk: a reindex and the store's compaction want as much again as there is.
func (e *examination) disk(dir string) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		e.warn("disk", "", "the free space of %s cannot be read: %v", dir, err)
		return
	}
	free, used := int64(disk.Bavail)*disk.Bsize, directorySize(e.settings.Data)
	switch {
	case free < littleDisk:
		e.fault("disk", "make room: a full disk stops writes", "%s free where %s is", gib(free), dir)
	case free < used:
		e.warn("disk", "make room before a reindex, which builds a second copy", "%s free where %s is, which has %s", gib(free), dir, gib(used))
	default:
		e.ok("disk", "%s free, the data take %s", gib(free), gib(used))
	}
}

func (e *examination) store(ctx context.Context) {
	if _, err := os.Stat(storeDir(e.settings.Data)); errors.Is(err, fs.ErrNotExist) {
		return
	}
	st, err := pebble.Open(storeDir(e.settings.Data), pebble.Options{ReadOnly: true})
	if errors.Is(err, store.ErrLocked) {
		e.running = true
		e.ok("store", "a daemon has it open; what is in it is not looked at")
		return
	}
	if err != nil {
		e.fault("store", "sluice check "+e.settings.Data+" says more; restore a backup if it is damaged (docs/operations.md)", "%v", err)
		return
	}
	collections, err := st.Collections(ctx)
	if err = errors.Join(err, st.Close()); err != nil {
		e.fault("store", "sluice check "+e.settings.Data, "%v", err)
		return
	}
	e.ok("store", "%d collections", len(collections))
	if s, err := readSnapshot(e.settings.Data); err == nil {
		e.warn("store", "apply later revocations again, then remove the file SNAPSHOT", "this is the restored snapshot of %s", s.Made.Format(time.RFC3339))
	}
	e.indexes()
}

// indexes opens each as a start does; 'sluice check' reads every byte.
func (e *examination) indexes() {
	entries, err := os.ReadDir(indexDir(e.settings.Data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.fault("index", "let the daemon's user read it", "%v", err)
		return
	}
	for _, entry := range entries {
		dir := filepath.Join(indexDir(e.settings.Data), entry.Name())
		if report, err := local.Inspect(dir); err != nil {
			e.warn("index", "nothing: the next start builds it again, from the store", "%s cannot be used: %v", dir, err)
		} else {
			e.ok("index", "%s: %d segments, at epoch %d", dir, report.Segments, report.Epoch)
		}
	}
}
