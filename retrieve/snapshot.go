package retrieve

import (
	"context"
	"sync/atomic"

	"sluice/filter"
	"sluice/index"
	"sluice/store"
)

// snapshot is one state of one generation of a collection: who may read what,
// and what is found, at the same epoch. It is closed when its last user is done.
type snapshot struct {
	store.Collection // its ID is the generation's
	serving          *Serving
	view             *filter.View
	index            index.Index // as it is now: at this epoch or a later one
	reader           index.Reader
	users            atomic.Int64 // the publisher counts as one
}

// newSnapshot is called under s.mu. c's number is that of the generation.
func (s *Serving) newSnapshot(c store.Collection, view *filter.View, ix index.Index, reader index.Reader) *snapshot {
	n := &snapshot{Collection: c, serving: s, view: view, index: ix, reader: reader}
	n.users.Store(1)
	s.reading[c.ID]++
	return n
}

func (s *snapshot) release() {
	if s.users.Add(-1) == 0 {
		s.reader.Close()
		s.serving.left(s.ID)
	}
}

func (s *Serving) left(generation uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading[generation]--; s.reading[generation] == 0 {
		delete(s.reading, generation)
		s.wake()
	}
}

// Idle blocks until no search reads the generation, which must not be the
// serving one.
func (s *Serving) Idle(ctx context.Context, generation uint32) error {
	return s.until(ctx, func() (bool, error) { return s.reading[generation] == 0, nil })
}

// acquire returns the present snapshot of a collection, or one of another of
// its generations (0: the serving one), which has all changes up to the epoch, and those of a
// shared store that came before the call; release it. What is unknown is store.ErrNotFound.
func (s *Serving) acquire(ctx context.Context, tenant, collection string, generation uint32) (at *snapshot, epoch uint64, err error) {
	if err := s.gate.pass(ctx, s); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.names[name{tenant, collection}]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	if generation == 0 || generation == c.current.ID {
		c.current.users.Add(1)
		return c.current, s.applied, nil
	}
	ix, ok := c.indexes[generation]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	reader, err := ix.Reader()
	if err != nil {
		return nil, 0, err
	}
	return s.newSnapshot(c.At(store.Generation{ID: generation}), c.current.view, ix, reader), s.applied, nil
}

// renew publishes the collection's present index with the given view.
func (s *Serving) renew(c *collection, view *filter.View) error {
	reader, err := c.index().Reader()
	if err != nil {
		return err
	}
	s.mu.Lock()
	last := c.current
	c.current = s.newSnapshot(c.At(c.Serving()), view, c.index(), reader)
	s.mu.Unlock()
	last.release()
	return nil
}

// policiesInForce returns the newest policies.
func (s *Serving) policiesInForce() *filter.Policies {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policies
}

// PolicyFaults is how many decisions the policies in force denied because of an
// error, and the last such error.
func (s *Serving) PolicyFaults() (count uint64, last error) { return s.policiesInForce().Faults() }

// CollectionID is the number of a collection, if it is served already.
func (s *Serving) CollectionID(tenant, collection string) (id uint32, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.names[name{tenant, collection}]
	if !known {
		return 0, false
	}
	return c.ID, true
}

// CheckDocument says why the policies in force could never permit a document
// with these attributes, or nil.
func (s *Serving) CheckDocument(a filter.Attributes) error {
	return s.policiesInForce().CheckDocument(a)
}
