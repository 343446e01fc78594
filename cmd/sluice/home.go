package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"sluice/retrieve"
	"sluice/store"
	"sluice/store/pebble"
	"sluice/store/postgres"
)

// openStore opens the store where the configuration says: in the data directory,
// or in a database that other daemons use too.
func (d *daemon) openStore(ctx context.Context) error {
	if err := os.MkdirAll(d.config.Data, 0o750); err != nil {
		return fmt.Errorf("creating the data directory: %w", err)
	}
	if d.config.Store != "" {
		return d.openDatabase(ctx)
	}
	warnOfSnapshot(d.config.Data, d.log)
	st, err := pebble.Open(storeDir(d.config.Data), pebble.Options{Logger: d.log})
	if err != nil {
		return err
	}
	d.store, d.indexes = st, indexDir(d.config.Data)
	return nil
}

// openDatabase opens the shared store. Indexes lie under its identity: what was
// built from another database is not this one's.
func (d *daemon) openDatabase(ctx context.Context) (err error) {
	if d.lock, err = vfs.Default.Lock(filepath.Join(d.config.Data, "LOCK")); err != nil {
		return fmt.Errorf("%w: %s; each daemon needs a data directory of its own (%w)", store.ErrLocked, d.config.Data, err)
	}
	st, err := postgres.Open(ctx, d.config.Store, postgres.Options{Logger: d.log})
	if err != nil {
		return err
	}
	d.database = st.ID()
	d.store, d.indexes = st, filepath.Join(indexDir(d.config.Data), st.ID())
	d.shared = append(d.shared, retrieve.Shared(d.config.StoreStaleness))
	d.log.Info("the store is a database", "identity", st.ID(), "staleness", d.config.StoreStaleness)
	return nil
}

// closeStore closes the store, and lets the data directory go.
func (d *daemon) closeStore() (err error) {
	if d.store != nil {
		err = d.store.Close()
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// openStored opens the store of a data directory for a command. It makes none.
func openStored(data string, options pebble.Options) (*pebble.Store, error) {
	if _, err := os.Stat(storeDir(data)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no store in %s; if the configuration there names a database as the store, check and back that up with its own tools, as pg_dump", store.ErrNotFound, data)
	}
	return pebble.Open(storeDir(data), options)
}

func storeDir(data string) string { return filepath.Join(data, "store") }
func indexDir(data string) string { return filepath.Join(data, "index") }
func collectionDir(indexes string, c store.Collection) string {
	return filepath.Join(indexes, fmt.Sprintf("c%08x", c.ID))
}
