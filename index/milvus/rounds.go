package milvus

import (
	"context"
	"sync"

	"sluice/index"
)

// mostQueries is how many are asked in one call. The server takes many more, but
// nobody is to wait for so much work of others.
const mostQueries = 64

// question is what queries must have in common to be asked in one call.
type question struct {
	filter string
	n      int
}

// rounds gathers the queries that come while a call with the same question is
// under way into the next one: a server answers eight in one call at two to three
// times the rate of eight calls (docs/measured.md). A query that comes alone is asked at
// once. The zero value is ready.
type rounds struct {
	mu   sync.Mutex
	next map[question]*round // an entry for each call under way; nil: nobody waits
}

// round is one call to come.
type round struct {
	vectors [][]float32
	done    chan struct{} // closed when the rest is set
	hits    [][]found
	err     error
}

// caller asks the server several queries, and returns the hits of each.
type caller func(ctx context.Context, vectors [][]float32) ([][]found, error)

func (r *rounds) ask(ctx context.Context, q question, vector []float32, call caller) ([]found, error) {
	joined, at, alone := r.join(q, vector)
	switch {
	case alone:
		defer r.ended(q, call)
		return first(call(ctx, [][]float32{vector}))
	case joined == nil:
		return first(call(ctx, [][]float32{vector}))
	}
	select {
	case <-joined.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if joined.err != nil {
		return nil, joined.err
	}
	return joined.hits[at], nil
}

func first(hits [][]found, err error) ([]found, error) {
	if err != nil {
		return nil, err
	}
	return hits[0], nil
}

// join adds a query to the next round. alone: no call of the question is under
// way, so the query is to be asked now; joined nil: the round is full.
func (r *rounds) join(q question, vector []float32) (joined *round, at int, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, under := r.next[q]
	switch {
	case !under:
		if r.next == nil {
			r.next = map[question]*round{}
		}
		r.next[q] = nil
		return nil, 0, true
	case next == nil:
		next = &round{done: make(chan struct{})}
		r.next[q] = next
	case len(next.vectors) == mostQueries:
		return nil, 0, false
	}
	next.vectors = append(next.vectors, vector)
	return next, len(next.vectors) - 1, false
}

// ended begins the round that has gathered, if any, on a goroutine that ends with
// the last one. A round is nobody's own: it has the deadline of a call.
func (r *rounds) ended(q question, call caller) {
	if next := r.take(q); next != nil {
		go func() {
			for ; next != nil; next = r.take(q) {
				next.run(call)
			}
		}()
	}
}

func (r *round) run(call caller) {
	defer close(r.done)
	r.err = index.Guarded(func() (err error) {
		r.hits, err = call(context.Background(), r.vectors)
		return err
	})()
}

// take returns the round to ask now; nil: nobody waits, and no call is under way.
func (r *rounds) take(q question) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next[q]
	if next == nil {
		delete(r.next, q)
	} else {
		r.next[q] = nil
	}
	return next
}
