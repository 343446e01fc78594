package retrieve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/filter"
	"sluice/index"
	"sluice/store"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// follow applies the change feed until ctx ends. A step that fails (a full
// disk, say) is retried: meanwhile writes are not acknowledged, and the recheck
// keeps searches exact.
func (s *Serving) follow(ctx context.Context) {
	defer close(s.done)
	for retry := firstRetry; ; {
		err := s.step(ctx)
		if ctx.Err() != nil {
			return // that a step ends with it is no failure
		}
		s.report(err)
		if err == nil {
			retry = firstRetry
			continue
		}
		s.log.Error("applying changes failed; trying again", "error", err, "in", retry)
		sleep(ctx, retry)
		retry = min(2*retry, lastRetry)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// step waits for changes, applies some and publishes them. A checkpoint that is
// due comes first: one that failed is not to wait for the next change.
func (s *Serving) step(ctx context.Context) error {
	if s.applied-s.flushed >= s.epochsPerFlush {
		return s.checkpoint(ctx)
	}
	if err := s.store.WaitChange(ctx, s.applied); err != nil {
		return err
	}
	changes, err := s.store.Changes(ctx, s.applied, changesPerStep)
	if errors.Is(err, store.ErrFeedTrimmed) {
		return s.resume(ctx)
	}
	if err != nil || len(changes) == 0 {
		return err
	}
	if err := s.apply(ctx, changes); err != nil {
		return err
	}
	s.advance(changes[len(changes)-1].Epoch)
	return nil
}

func (s *Serving) apply(ctx context.Context, changes []store.Change) error {
	epoch := changes[len(changes)-1].Epoch
	if hasKind(changes, store.PoliciesChanged) {
		if err := s.applyPolicies(ctx); err != nil {
			return err
		}
	}
	if hasKind(changes, store.CollectionCreated) {
		if err := s.openCollections(ctx, epoch); err != nil {
			return err
		}
	}
	if err := s.applyGenerations(ctx, changes, epoch); err != nil {
		return err
	}
	for id, c := range s.collections {
		if documents := touchedOf(changes, id); len(documents) > 0 {
			if err := s.applyDocuments(ctx, c, documents, epoch); err != nil {
				return fmt.Errorf("collection %s: %w", c.Name, err)
			}
		}
	}
	return nil
}

// resume goes on where the feed no longer has what is missing here: what there
// is, and what there was, is brought to its present state.
func (s *Serving) resume(ctx context.Context) error {
	epoch, err := s.store.Epoch(ctx)
	if err != nil {
		return err
	}
	s.log.Warn("the feed was forgotten faster than it was followed; all documents are compared", "applied", s.applied, "epoch", epoch)
	if err := s.applyPolicies(ctx); err != nil {
		return err
	}
	everyone := func(uint32) bool { return true }
	if err := s.regenerateAll(ctx, everyone, epoch); err != nil {
		return err
	}
	for _, c := range s.collections {
		ordinals, err := s.ordinals(ctx, c, epoch)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(ordinals, rebuildDocBatch) {
			if err := s.applyDocuments(ctx, c, allOf(part, true), s.applied); err != nil {
				return fmt.Errorf("collection %s: %w", c.Name, err)
			}
		}
	}
	if err := s.openCollections(ctx, epoch); err != nil {
		return err
	}
	s.advance(epoch)
	return nil
}

// ordinals are those of the documents that are here or in the store, ascending.
// A generation that does not serve has none beside them.
func (s *Serving) ordinals(ctx context.Context, c *collection, epoch uint64) ([]uint32, error) {
	ordinals := slices.Collect(c.current.view.Documents)
	for record, err := range s.store.Scan(ctx, c.Serving().ID, 0) {
		if err != nil {
			return nil, err
		}
		ordinals = append(ordinals, record.Ordinal)
	}
	if again, err := s.overtaken(ctx, c, epoch); err != nil {
		return nil, err
	} else if again {
		return s.ordinals(ctx, c, epoch)
	}
	slices.Sort(ordinals)
	return slices.Compact(ordinals), nil
}

func hasKind(changes []store.Change, kind store.ChangeKind) bool {
	for _, c := range changes {
		if c.Kind == kind {
			return true
		}
	}
	return false
}

// applyPolicies puts the stored policies in force in every collection.
func (s *Serving) applyPolicies(ctx context.Context) error {
	if err := s.loadPolicies(ctx); err != nil {
		return err
	}
	for _, c := range s.collections {
		if err := s.renew(c, c.current.view.WithPolicies(s.policies)); err != nil {
			return err
		}
	}
	return nil
}

// applyDocuments brings indexes and view to the documents' present state, then
// publishes both in one step: a grant is never visible before its rows. All is
// read before anything is applied: a step that ends in between leaves no index
// ahead of the others.
func (s *Serving) applyDocuments(ctx context.Context, c *collection, documents touched, epoch uint64) error {
	now, err := s.present(ctx, c, documents, epoch)
	if err != nil {
		return err
	}
	for generation, ix := range c.indexes {
		if err := ix.Apply(ctx, now[generation].batch); err != nil {
			return err
		}
	}
	return s.renew(c, c.current.view.Apply(now[c.Serving().ID].changes))
}

// present reads documents for every index. An index that was opened at a later
// epoch, here or by a step that failed, keeps that. What a generation that the
// store has dropped lacks is not taken for deleted.
func (s *Serving) present(ctx context.Context, c *collection, documents touched, epoch uint64) (map[uint32]states, error) {
	now := make(map[uint32]states, len(c.indexes))
	for generation, ix := range c.indexes {
		state, err := s.read(ctx, ix, generation, documents, max(epoch, ix.Applied()))
		if err != nil {
			return nil, err
		}
		now[generation] = state
	}
	if !slices.ContainsFunc(now[c.Serving().ID].changes, func(c filter.Change) bool { return c.Deleted }) {
		return now, nil
	}
	again, err := s.overtaken(ctx, c, epoch)
	if again && err == nil {
		return s.present(ctx, c, documents, epoch)
	}
	return now, err
}

// checkpoint makes the indexes durable and forgets the feed they no longer need.
func (s *Serving) checkpoint(ctx context.Context) error {
	for _, c := range s.collections {
		for _, ix := range c.indexes {
			if err := ix.Apply(ctx, index.Batch{Epoch: s.applied}); err != nil {
				return err
			}
			if err := ix.Flush(ctx); err != nil {
				return fmt.Errorf("flushing the index of %s: %w", c.Name, err)
			}
		}
	}
	s.flushed = s.applied
	return s.store.Trim(ctx, s.applied-min(s.applied, s.retained))
}

func (s *Serving) advance(epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = epoch
	s.wake()
}

// Applied is the epoch that searches have reached.
func (s *Serving) Applied() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

// report remembers whether the last step failed, for those who wait and for health.
func (s *Serving) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	if err != nil {
		s.wake()
	}
}

func (s *Serving) wake() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// Await blocks until every change up to epoch is what searches see.
func (s *Serving) Await(ctx context.Context, epoch uint64) error {
	return s.until(ctx, func() (bool, error) {
		if s.applied < epoch && s.failure != nil {
			return false, fmt.Errorf("%w: %w", ErrBehind, s.failure)
		}
		return s.applied >= epoch, nil
	})
}

// until blocks until holds, which is called under s.mu, says yes or fails.
func (s *Serving) until(ctx context.Context, holds func() (bool, error)) error {
	for {
		s.mu.Lock()
		yes, err := holds()
		moved := s.moved
		s.mu.Unlock()
		if yes || err != nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return ErrStopped
		}
	}
}

// Ready reports why searches may be behind the store, or nil.
func (s *Serving) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Close stops following and makes the indexes durable. Searches must have ended.
func (s *Serving) Close(ctx context.Context) error {
	s.stop()
	<-s.done
	s.gate.close()
	err := s.checkpoint(ctx)
	for _, c := range s.collections {
		c.current.release()
	}
	return errors.Join(err, s.closeIndexes())
}

func (s *Serving) closeIndexes() error {
	var errs []error
	for _, c := range s.collections {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
