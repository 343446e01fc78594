package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/store"
)

// The format of the directory: ours, in a file of its own so that a directory of
// a newer version is recognised before anything is opened or changed, and
// pebble's. Who raises pebble's raises ours too.
const (
	formatVersion = 2
	formatFile    = "FORMAT"
	formatPrefix  = "sluice store "
	pebbleFormat  = pebble.FormatTableFormatV6
)

// readFormat returns the format version of the directory, 0 if it has none, and
// ErrNewerFormat if it is beyond what this program knows.
func readFormat(files vfs.FS, dir string) (int, error) {
	path := files.PathJoin(dir, formatFile)
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the store's format: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return 0, fmt.Errorf("reading the store's format: %w", err)
	}
	number, found := strings.CutPrefix(strings.TrimSpace(string(content)), formatPrefix)
	version, err := strconv.Atoi(number)
	if err != nil || !found || version < 1 {
		return 0, fmt.Errorf("%w: %s does not hold a format version", store.ErrCorrupt, path)
	}
	if version > formatVersion {
		return 0, fmt.Errorf("%w: %s has store format %d, this program knows up to %d; start the program that wrote it, or a later one", store.ErrNewerFormat, dir, version, formatVersion)
	}
	return version, nil
}

// writeFormat puts the format version into a new directory, durably and in one step.
func writeFormat(files vfs.FS, dir string) error {
	if err := placeFormat(files, dir); err != nil {
		return fmt.Errorf("writing the store's format: %w", err)
	}
	return nil
}

func placeFormat(files vfs.FS, dir string) error {
	path := files.PathJoin(dir, formatFile)
	f, err := files.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s%d\n", formatPrefix, formatVersion); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := files.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(files, dir)
}

func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
