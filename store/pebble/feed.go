package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"sluice/store"
)

// feed is the epoch up to which everything is durable, and who waits for it to grow.
type feed struct {
	mu    sync.Mutex
	epoch uint64
	grown chan struct{} // closed when epoch grows
}

func (f *feed) start(epoch uint64) {
	f.epoch, f.grown = epoch, make(chan struct{})
}

func (f *feed) advance(epoch uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch > f.epoch {
		f.epoch = epoch
		close(f.grown)
		f.grown = make(chan struct{})
	}
}

func (f *feed) now() (epoch uint64, grown <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch, f.grown
}

// Epoch returns the epoch of the last durable change.
func (s *Store) Epoch(context.Context) (uint64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.use.RUnlock()
	epoch, _ := s.feed.now()
	return epoch, nil
}

// Changes returns durable changes after an epoch.
func (s *Store) Changes(ctx context.Context, after uint64, limit int) ([]store.Change, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("%w: a limit of %d changes", store.ErrInvalid, limit)
	}
	var changes []store.Change
	err := s.view(ctx, func(r pebble.Reader) error {
		m, err := readMeta(r)
		if err != nil {
			return err
		}
		if after < m.trimmed {
			return fmt.Errorf("%w: asked for what follows epoch %d, kept is what follows %d", store.ErrFeedTrimmed, after, m.trimmed)
		}
		changes, err = s.readChanges(ctx, r, after, limit)
		return err
	})
	return changes, err
}

func (s *Store) readChanges(ctx context.Context, r pebble.Reader, after uint64, limit int) ([]store.Change, error) {
	durable, _ := s.feed.now()
	if after >= durable {
		return nil, nil
	}
	it, err := r.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: feedKey(after + 1), UpperBound: feedKey(durable + 1)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var changes []store.Change
	for it.First(); it.Valid() && len(changes) < limit; it.Next() {
		change, err := changeAt(it)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, it.Error()
}

func changeAt(it *pebble.Iterator) (store.Change, error) {
	if len(it.Key()) != 9 {
		return store.Change{}, fmt.Errorf("%w: key %x has %d bytes, not 9", store.ErrCorrupt, it.Key(), len(it.Key()))
	}
	body, err := bodyAt(it)
	if err != nil {
		return store.Change{}, err
	}
	return decodeChange(binary.BigEndian.Uint64(it.Key()[1:]), body)
}

// WaitChange waits until the epoch is greater than after.
func (s *Store) WaitChange(ctx context.Context, after uint64) error {
	for {
		epoch, grown := s.feed.now()
		if err := s.guard.failure(); err != nil {
			return err
		}
		select {
		case <-s.ending:
			return store.ErrClosed
		default:
		}
		if epoch > after {
			return nil
		}
		select {
		case <-grown:
		case <-s.ending:
		case <-s.guard.failed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Trim forgets changes, at most those that are durable.
func (s *Store) Trim(ctx context.Context, upTo uint64) error {
	durable, _ := s.feed.now()
	upTo = min(upTo, durable)
	return s.submit(ctx, func(t *txn) error {
		if upTo <= t.meta.trimmed {
			return nil
		}
		err := t.batch.DeleteRange(feedKey(t.meta.trimmed), feedKey(upTo+1), nil)
		if err != nil {
			return err
		}
		t.meta.trimmed = upTo
		return t.setMeta()
	})
}
