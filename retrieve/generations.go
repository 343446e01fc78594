package retrieve

import (
	"context"
	"fmt"

	"sluice/index"
	"sluice/store"
)

// applyGenerations follows changes of collections' generations. A switch is one
// step: the snapshot that searches start from is of another generation then.
func (s *Serving) applyGenerations(ctx context.Context, changes []store.Change, epoch uint64) error {
	if !hasKind(changes, store.GenerationsChanged) {
		return nil
	}
	return s.regenerateAll(ctx, func(id uint32) bool { return concerns(changes, id) }, epoch)
}

// regenerateAll brings the collections that are here, and concerned, to the
// generations that they have in the store.
func (s *Serving) regenerateAll(ctx context.Context, concerned func(collection uint32) bool, epoch uint64) error {
	all, err := s.store.Collections(ctx)
	if err != nil {
		return err
	}
	for _, now := range all {
		c := s.collections[now.ID]
		if c == nil || !concerned(now.ID) {
			continue
		}
		if err := s.regenerate(ctx, c, now, epoch); err != nil {
			return fmt.Errorf("collection %s: %w", now.Name, err)
		}
	}
	return nil
}

func concerns(changes []store.Change, collection uint32) bool {
	for _, c := range changes {
		if c.Kind == store.GenerationsChanged && c.Collection == collection {
			return true
		}
	}
	return false
}

// regenerate opens what is new, publishes what serves, and drops what is gone.
func (s *Serving) regenerate(ctx context.Context, c *collection, now store.Collection, epoch uint64) error {
	if err := s.openGenerations(ctx, c, now.Live(), epoch); err != nil {
		return err
	}
	s.mu.Lock()
	c.Collection = now
	s.mu.Unlock()
	if err := s.renew(c, c.current.view); err != nil {
		return err
	}
	for id, ix := range c.indexes {
		if live(now, id) {
			continue
		}
		s.mu.Lock()
		delete(c.indexes, id)
		s.mu.Unlock()
		if err := drop(ix); err != nil {
			s.log.Error("removing the index of a dropped generation; the next start tries again", "collection", c.Name, "generation", id, "error", err)
		}
	}
	return nil
}

// overtaken reports that the store has dropped the generation that serves here,
// so that nothing follows from what it lacks. The collection goes on with those
// that there are.
func (s *Serving) overtaken(ctx context.Context, c *collection, epoch uint64) (bool, error) {
	now, err := s.store.Collection(ctx, c.Tenant, c.Name)
	if err != nil || live(now, c.Serving().ID) {
		return false, err
	}
	return true, s.regenerate(ctx, c, now, epoch)
}

func live(c store.Collection, generation uint32) bool {
	for _, g := range c.Live() {
		if g.ID == generation {
			return true
		}
	}
	return false
}

// drop closes an index for good, and removes it where it can.
func drop(ix index.Index) error {
	if d, ok := ix.(index.Dropper); ok {
		return d.Drop()
	}
	return ix.Close()
}
