//go:build nvidia

package measure

import (
	"fmt"
	"time"

	"sluice/gpu/cuda"
	"sluice/kernels/simd"
)

// leastHeld is the rows of the smallest segment that is copied to a device.
const leastHeld = 1 << 16

// measureEven is of where a search by a worker and one by the CPU take equally
// long: a search of the fewest rows that a worker has, which is little but the way
// to it and back, and the products of one core of the CPU.
func (r *run) measureEven(s *cuda.Searcher) error {
	rows := min(leastHeld, r.sizes.Vectors)
	c := newCorpus(rows)
	c.held = s.Hold(c.rows, searchDims)
	defer c.held.Close()
	if err := c.await(); err != nil {
		return fmt.Errorf("copying %d rows to the worker: %w", rows, err)
	}
	if err := r.latencies("worker.search.few", func() error { return c.search(0) }); err != nil {
		return err
	}
	var slots []uint32
	for row := range rows {
		if c.masks[0].admits(row) {
			slots = append(slots, uint32(row))
		}
	}
	kernels, products := simd.Best(), make([]float32, len(slots))
	took, err := r.median(func() (float64, error) {
		began := time.Now()
		kernels.DotRows(c.queries[0], c.rows, slots, products)
		return time.Since(began).Seconds(), nil
	})
	if err != nil {
		return err
	}
	rate := float64(len(slots)) / took
	r.figure("cpu.search.rows_per_s", rate)
	r.figure("even.search.rows", rate*r.figures["worker.search.few.p50_ms"]/1000)
	return nil
}
