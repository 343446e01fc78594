package local

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"sluice/filter"
	"sluice/index"
	"sluice/index/local/ivf"
	"sluice/index/text"
)

// Reader answers queries over one snapshot.
type Reader struct {
	state    *snapshot
	dims     int
	space    *ivf.Space
	log      *slog.Logger
	analyzer text.Analyzer
	memory   *sync.Pool // of *scratch
	closed   atomic.Bool
}

// Close lets go of the snapshot, once. Queries under way finish first.
func (r *Reader) Close() {
	if !r.closed.Swap(true) {
		r.state.release()
	}
}

// mostBuiltKept is how many bytes of lists a query leaves to the next.
const mostBuiltKept = 1 << 20

// begin holds the snapshot for one query; end lets go.
func (r *Reader) begin() (*scratch, error) {
	if r.closed.Load() || !r.state.acquire() {
		return nil, index.ErrClosed
	}
	return r.memory.Get().(*scratch), nil
}

func (r *Reader) end(s *scratch) {
	if cap(s.lexical.built) > mostBuiltKept {
		s.lexical.built = nil
	}
	r.memory.Put(s)
	r.state.release()
}

// Dense scores allowed rows: those of a large segment that its lists hold near
// the vector, of others all.
func (r *Reader) Dense(ctx context.Context, allowed filter.Set, vector []float32, k int) ([]index.Hit, error) {
	if err := index.CheckVector(vector, r.dims); err != nil {
		return nil, err
	}
	memory, err := r.begin()
	if err != nil {
		return nil, err
	}
	defer r.end(memory)
	search := denseSearch{space: r.space, log: r.log, state: r.state, allowed: allowed, query: vector, denseMemory: &memory.dense}
	return search.run(ctx, k)
}
