package milvus

import (
	"context"
	"sync/atomic"

	"sluice/filter"
	"sluice/index"
)

// reader answers queries over one state.
type reader struct {
	state   *state
	options Options
	closed  atomic.Bool
}

// Close lets go of the state, once. Queries under way finish first.
func (r *reader) Close() {
	if !r.closed.Swap(true) {
		r.state.release()
	}
}

// begin holds the state for one query; the caller releases it.
func (r *reader) begin() error {
	if r.closed.Load() || !r.state.acquire() {
		return index.ErrClosed
	}
	return nil
}

// Dense asks the servers inside the Set, and looks at every hit itself.
func (r *reader) Dense(ctx context.Context, allowed filter.Set, vector []float32, k int) ([]index.Hit, error) {
	if err := index.CheckVector(vector, r.options.Dimensions); err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.state.release()
	if k < 1 || allowed.IsEmpty() {
		return nil, ctx.Err()
	}
	p, err := r.state.plan(allowed)
	if err != nil {
		return nil, err
	}
	if p.rows == 0 {
		return nil, ctx.Err()
	}
	s := search{state: r.state, allowed: allowed, vector: vector, k: min(k, p.rows), partial: r.options.Partial}
	return s.run(ctx, p)
}

// Lexical is the embedded index's.
func (r *reader) Lexical(ctx context.Context, allowed filter.Set, text string, k int) ([]index.Hit, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.state.release()
	return r.state.postings.Lexical(ctx, allowed, text, k)
}
