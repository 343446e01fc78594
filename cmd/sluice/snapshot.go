package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/client"
	"sluice/index/local"
	"sluice/server/audit"
	"sluice/store"
	"sluice/store/pebble"
)

type snapshotCommand struct {
	Data  string `arg:"" help:"Data directory, of a daemon that runs or not."`
	Name  string `arg:"" help:"Name of the snapshot: it is made in DATA/snapshots/NAME."`
	Admin string `help:"Admin listener of the daemon, if one runs (its setting admin_listen)." default:"http://127.0.0.1:8081"`
}

// Run opens the store itself; where a daemon has it open, the daemon is asked.
func (c snapshotCommand) Run(ctx context.Context) error {
	made, err := c.take(ctx)
	if errors.Is(err, store.ErrLocked) {
		made, err = c.ask(ctx)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s holds every change up to epoch %d\n", filepath.Join(snapshotsDir(c.Data), made.Name), made.Epoch)
	return nil
}

func (c snapshotCommand) take(ctx context.Context) (client.Snapshot, error) {
	st, err := openStored(c.Data, pebble.Options{})
	if err != nil {
		return client.Snapshot{}, err
	}
	made, err := takeSnapshot(ctx, st, c.Data, client.Snapshot{Name: c.Name})
	return made, errors.Join(err, st.Close())
}

// ask also looks whether that daemon's data is ours.
func (c snapshotCommand) ask(ctx context.Context) (client.Snapshot, error) {
	api, err := client.New(c.Admin)
	if err != nil {
		return client.Snapshot{}, err
	}
	made, err := api.Snapshot(ctx, c.Name)
	if err != nil {
		return made, fmt.Errorf("a daemon has %s open; asking it at %s: %w", c.Data, c.Admin, admin{c.Admin}.hint(err))
	}
	there, err := readSnapshot(filepath.Join(snapshotsDir(c.Data), made.Name))
	if err != nil || !there.Made.Equal(made.Made) {
		return made, fmt.Errorf("the daemon at %s has another data directory than %s and made the snapshot %s there; name the right one with --admin", c.Admin, c.Data, made.Name)
	}
	return made, nil
}

func snapshotsDir(data string) string { return filepath.Join(data, "snapshots") }

const (
	snapshotFile = "SNAPSHOT"
	unfinished   = ".part" // at the end of the name of a snapshot under way, which begins with a dot
)

// snapshotName keeps names from being paths, hidden files or unfinished snapshots.
var snapshotName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// takeSnapshot makes a snapshot of an open store and the indexes beside it. It
// has its name when all of it is on disk, and not before. One at a time.
func takeSnapshot(ctx context.Context, st *pebble.Store, data string, s client.Snapshot) (_ client.Snapshot, err error) {
	if !snapshotName.MatchString(s.Name) {
		return s, fmt.Errorf("%w: %q is no name for a snapshot; use letters, digits, dots, dashes and underscores", store.ErrInvalid, s.Name)
	}
	target := filepath.Join(snapshotsDir(data), s.Name)
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return s, errors.Join(err, fmt.Errorf("the snapshot %s: %w", s.Name, fs.ErrExist))
	}
	part := filepath.Join(snapshotsDir(data), "."+s.Name+unfinished)
	if err := beginSnapshot(data, part); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("making the snapshot %s: %w", s.Name, err), os.RemoveAll(part))
		}
	}()
	if s.Epoch, err = st.Epoch(ctx); err != nil {
		return s, err
	}
	s.Made, s.Version = time.Now().UTC(), commit
	linkIndexes(data, part)
	if err := st.Checkpoint(ctx, storeDir(part)); err != nil {
		return s, err
	}
	if err := errors.Join(writeSnapshot(part, s), syncDirs(indexDir(part), part)); err != nil {
		return s, err
	}
	return s, errors.Join(os.Rename(part, target), syncDirs(snapshotsDir(data)))
}

// beginSnapshot makes the directory, and removes what crashes have left.
func beginSnapshot(data, part string) error {
	left, err := filepath.Glob(filepath.Join(snapshotsDir(data), ".*"+unfinished))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing an unfinished snapshot: %w", err)
		}
	}
	if err := os.MkdirAll(indexDir(part), 0o700); err != nil {
		return err
	}
	return syncDirs(data, snapshotsDir(data))
}

// linkIndexes copies the indexes as they were last flushed; the feed in the
// store brings them forward. One that cannot be copied is left out, since it
// can be built again.
func linkIndexes(data, part string) {
	entries, err := os.ReadDir(indexDir(data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("the snapshot is without indexes; they are built again when it is used", "reason", err)
	}
	for _, entry := range entries {
		target := filepath.Join(indexDir(part), entry.Name())
		if err := local.Link(filepath.Join(indexDir(data), entry.Name()), target, vfs.Default); err != nil {
			slog.Warn("the snapshot is without an index; it is built again when the snapshot is used", "reason", errors.Join(err, os.RemoveAll(target)))
		}
	}
}

func writeSnapshot(dir string, s client.Snapshot) (err error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, snapshotFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// readSnapshot returns what a data directory is a snapshot of; fs.ErrNotExist:
// of none.
func readSnapshot(data string) (s client.Snapshot, err error) {
	text, err := os.ReadFile(filepath.Join(data, snapshotFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("reading what %s is a snapshot of: %w", data, err)
	}
	return s, nil
}

func syncDirs(dirs ...string) error {
	for _, name := range dirs {
		dir, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return err
		}
	}
	return nil
}

// snapshot makes one of the running daemon.
func (d *daemon) snapshot(ctx context.Context, name string) (s client.Snapshot, err error) {
	d.snapshots.Lock()
	defer d.snapshots.Unlock()
	st, ok := d.store.(*pebble.Store)
	if !ok {
		return s, fmt.Errorf("%w: the store is a database; back it up with its own tools, as pg_dump", store.ErrInvalid)
	}
	r := audit.Record{Action: audit.TakeSnapshot, Document: name}
	err = d.audit.Administrative(ctx, r, internalError, func() (_ uint64, err error) {
		if s, err = takeSnapshot(ctx, st, d.config.Data, client.Snapshot{Name: name, Policies: d.config.Policies}); err != nil {
			return 0, err
		}
		d.log.Info("snapshot made", "name", name, "epoch", s.Epoch)
		return s.Epoch, nil
	})
	return s, err
}

// warnOfSnapshot says what a restored directory lacks, at every start until the
// operator takes the file away.
func warnOfSnapshot(data string, log *slog.Logger) {
	s, err := readSnapshot(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		log.Warn("this data directory may be a restored snapshot", "error", err)
	default:
		log.Warn("this data directory is a restored snapshot: revocations, deletions and all other changes after it are gone; apply them again, then remove the file SNAPSHOT",
			"made", s.Made, "epoch", s.Epoch)
	}
}
