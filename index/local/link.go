package local

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/index"
)

// linkAttempts: a merge may remove a segment before it is linked.
const linkAttempts = 10

// Link makes target, which must not be there, the index that dir is after a
// restart: what was last flushed. Segments are hard links where the file system
// has them. The index may be in use. After an error target is to be removed.
func Link(dir, target string, files vfs.FS) error {
	var err error
	for range linkAttempts {
		err = linkOnce(dir, target, files)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = errors.Join(err, files.RemoveAll(target))
	}
	if err != nil {
		return fmt.Errorf("linking the index %s: %w", dir, err)
	}
	return nil
}

// linkOnce links what the manifest names and writes the manifest last.
func linkOnce(dir, target string, files vfs.FS) error {
	m, err := readManifest(files, dir)
	if err != nil {
		return err
	}
	if m == nil {
		return index.ErrRebuild
	}
	if err := files.MkdirAll(target, 0o750); err != nil {
		return err
	}
	for _, entry := range m.segments {
		link := func(name string) error {
			return vfs.LinkOrCopy(files, files.PathJoin(dir, name), files.PathJoin(target, name))
		}
		if err := link(codesName(entry.id)); err != nil && !errors.Is(err, fs.ErrNotExist) { // not every segment has them
			return err
		}
		if err := link(segmentName(entry.id)); err != nil {
			return err
		}
	}
	if err := syncDir(files, target); err != nil { // what the manifest names is there before it is
		return err
	}
	return writeManifest(files, target, m)
}
