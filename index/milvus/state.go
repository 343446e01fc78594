package milvus

import (
	"sync/atomic"

	"sluice/filter"
	"sluice/filter/lru"
	"sluice/index/local"
)

// state is what a Reader sees: the live rows with their postings, and how the
// servers can be asked for them. The rows themselves the servers have, and those
// of later states too; postings say which of them count.
type state struct {
	number   uint64
	postings *local.Reader
	shards   []shardState
	owners   *owners
	plans    *lru.Cache[filter.Set, *plan]
	refs     atomic.Int64
	released func() // called once, after the last has let go
}

// shardState is one cluster's part.
type shardState struct {
	*collection
	classes classes
}

// plan is how a Set is searched. Sets are values that live as long as an epoch,
// and are compared as such.
type plan struct {
	rows   int // live ones of allowed documents
	covers []cover
}

const (
	planBudget = 16 << 20 // bytes
	planWeight = 256      // beside the text
)

func newState(number uint64, postings *local.Reader, shards []shardState, owners *owners, released func()) *state {
	s := &state{number: number, postings: postings, shards: shards, owners: owners, released: released, plans: lru.New[filter.Set, *plan](planBudget)}
	s.refs.Store(1)
	return s
}

func (s *state) plan(allowed filter.Set) (*plan, error) {
	if p, ok := s.plans.Get(allowed); ok {
		return p, nil
	}
	rows, err := s.postings.Rows(allowed)
	if err != nil {
		return nil, err
	}
	p, weight := &plan{rows: rows, covers: make([]cover, len(s.shards))}, planWeight
	for i, shard := range s.shards {
		p.covers[i] = shard.classes.coverOf(allowed)
		for _, e := range p.covers[i].searches {
			weight += len(e.text)
		}
	}
	s.plans.Put(allowed, p, weight)
	return p, nil
}

// acquire reports false if the last holder has let go.
func (s *state) acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *state) release() {
	if s.refs.Add(-1) == 0 {
		s.postings.Close()
		s.released()
	}
}
