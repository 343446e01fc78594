package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	temporary     = ".tmp"
	segmentSuffix = ".seg"
)

func segmentName(id uint64) string { return fmt.Sprintf("%016x%s", id, segmentSuffix) }

// writeFile creates or replaces a file so that after a crash it is wholly
// there or as it was before.
func writeFile(fs vfs.FS, dir, name string, write func(io.Writer) error) error {
	path := fs.PathJoin(dir, name)
	if err := writeSynced(fs, path+temporary, write); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := fs.Rename(path+temporary, path); err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	return syncDir(fs, dir)
}

// writeSynced leaves no file behind if it fails: the disk may be full.
func writeSynced(fs vfs.FS, path string, write func(io.Writer) error) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = fill(f, write)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return errors.Join(err, fs.Remove(path))
	}
	return nil
}

func fill(f vfs.File, write func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(f, 1<<18)
	if err := write(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes renames inside a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("opening %s to sync it: %w", dir, err)
	}
	if err := d.Sync(); err != nil {
		d.Close() //nolint:errcheck // the first error tells more
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return d.Close()
}

// readFile returns the content of a file: mapped where the file system has
// descriptors, else read. unmap is nil if there is nothing to let go of.
func readFile(fs vfs.FS, path string, log *slog.Logger) (data []byte, unmap func(), err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // only read; a mapping outlives it
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if f.Fd() == vfs.InvalidFd || info.Size() == 0 {
		data, err = io.ReadAll(f)
		return data, nil, err
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return data, func() {
		if err := unix.Munmap(data); err != nil {
			log.Error("unmapping an index segment", "path", path, "error", err)
		}
	}, nil
}

// loadFile reads a whole file into memory of large pages, which searches that
// jump about need. free lets go of it.
func loadFile(files vfs.FS, path string, log *slog.Logger) (data []byte, free func(), err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if data, free, err = largePages(int(info.Size()), log); err != nil {
		return nil, nil, err
	}
	if _, err = io.ReadFull(f, data); err != nil {
		free()
		return nil, nil, err
	}
	return data, free, nil
}

// largePages returns zeroed memory outside the garbage collector's care.
func largePages(size int, log *slog.Logger) (data []byte, free func(), err error) {
	if size == 0 {
		return nil, func() {}, nil
	}
	data, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("allocating %d bytes: %w", size, err)
	}
	preferLargePages(data)
	return data, func() {
		if err := unix.Munmap(data); err != nil {
			log.Error("releasing memory", "bytes", size, "error", err)
		}
	}, nil
}

// removeOthers removes what crashes left behind: files of ours not in keep.
func removeOthers(fs vfs.FS, dir string, keep map[string]bool) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	for _, name := range names {
		ours := slices.Contains([]string{segmentSuffix, codesSuffix, temporary}, filepath.Ext(name))
		if !ours || keep[name] {
			continue
		}
		if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("removing a left-over: %w", err)
		}
	}
	return nil
}
