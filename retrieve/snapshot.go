package retrieve

import (
	"context"
	"sync/atomic"

	"sluice/filter"
	"sluice/index"
	"sluice/store"
)

// snapshot is one published state of a collection: who may read what, and
// what is found, at the same epoch. It is closed when its last user is done.
type snapshot struct {
	store.Collection
	view   *filter.View
	index  index.Index // as it is now: at this epoch or a later one
	reader index.Reader
	users  atomic.Int64 // the publisher counts as one
}

func newSnapshot(c store.Collection, view *filter.View, ix index.Index, reader index.Reader) *snapshot {
	s := &snapshot{Collection: c, view: view, index: ix, reader: reader}
	s.users.Store(1)
	return s
}

func (s *snapshot) release() {
	if s.users.Add(-1) == 0 {
		s.reader.Close()
	}
}

// acquire returns the present snapshot of a collection, which has all changes up
// to the epoch, and those of a shared store that came before the call; release it.
// An unknown collection is store.ErrNotFound.
func (s *Serving) acquire(ctx context.Context, tenant, collection string) (at *snapshot, epoch uint64, err error) {
	if err := s.gate.pass(ctx, s); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.names[name{tenant, collection}]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	c.current.users.Add(1)
	return c.current, s.applied, nil
}

// publish replaces the snapshot searches start from.
func (s *Serving) publish(c *collection, next *snapshot) {
	s.mu.Lock()
	last := c.current
	c.current = next
	s.mu.Unlock()
	last.release()
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

// CheckDocument says why the policies in force could never permit a document
// with these attributes, or nil.
func (s *Serving) CheckDocument(a filter.Attributes) error {
	return s.policiesInForce().CheckDocument(a)
}
