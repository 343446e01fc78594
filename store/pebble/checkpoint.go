package pebble

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
)

// Checkpoint makes dir, which must not be there, a store of its own that holds
// every write acknowledged before the call, durably. Tables are hard links where
// the file system has them, so it costs little room until they are compacted
// away here. Others may write meanwhile. After an error dir is to be removed.
func (s *Store) Checkpoint(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.readOnly {
		return store.ErrReadOnly
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.use.RUnlock()
	err := s.guard.run(func() error { return s.checkpoint(dir) })
	if err == nil {
		err = placeFormat(s.guard.FS, dir)
	}
	if err != nil {
		return fmt.Errorf("copying the store to %s: %w", dir, err)
	}
	return nil
}

// checkpoint recovers from pebble's panic where a directory cannot be synced: it
// is the checkpoint's own, and pebble holds no lock then.
func (s *Store) checkpoint(dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return s.db.Checkpoint(dir, pebble.WithFlushedWAL())
}
