package cuda

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
)

// Searcher searches on GPUs: rows of vectors that lie there, and passages by
// late interaction.
type Searcher struct {
	workers []*worker
	next    atomic.Uint32
}

// StartSearcher is a Searcher alone: a worker of the program at path on a device,
// without models, until stop. ctx bounds the start.
func StartSearcher(ctx context.Context, path string, ordinal int, log *slog.Logger) (s *Searcher, stop func(), err error) {
	w, err := startWorker(ctx, path, ordinal, log)
	if err != nil {
		return nil, nil, fmt.Errorf("GPU %d: %w", ordinal, err)
	}
	return &Searcher{workers: []*worker{w}}, w.end, nil
}

// worker is each in turn.
func (s *Searcher) worker() *worker { return s.workers[int(s.next.Add(1))%len(s.workers)] }

// Hold copies vectors, rows of dims numbers, to one of the devices in the
// background, again whenever its worker was started again. They are read until
// Close returns.
func (s *Searcher) Hold(vectors []float32, dims int) *Rows {
	return holdRows(s.worker(), vectors, dims)
}

// MaxSim sets scores to those of passages, code rows of 1 bit a dimension each,
// by late interaction with a query, rows of dims numbers: see kernels/ref.MaxSim.
// dims is a multiple of 32. Errors wrap ErrWorker, or are a wire.Failure.
func (s *Searcher) MaxSim(ctx context.Context, scores, query []float32, dims int, passages [][]byte) error {
	l, _ := s.worker().present()
	ctx, cancel := patience(ctx)
	defer cancel()
	return l.do(ctx, call{out: gpu.Output{Pooled: scores}}, func(dst []byte, id uint32) ([]byte, error) {
		return wire.AppendMaxSim(dst, id, query, dims, passages)
	})
}
