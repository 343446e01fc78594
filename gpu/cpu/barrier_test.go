package cpu

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Nobody is a round ahead of another, whether waits are short or long.
func TestBarrierKeepsRoundsApart(t *testing.T) {
	const size, rounds = 5, 400
	b := newBarrier()
	b.size = size
	var entered [rounds]atomic.Int32
	var wg sync.WaitGroup
	for worker := range size {
		wg.Go(func() {
			for round := range rounds {
				for range worker * (round % 7) * 2000 { // be late
					entered[round].Load()
				}
				entered[round].Add(1)
				b.wait()
				if n := entered[round].Load(); n != size {
					t.Errorf("worker %d left round %d with %d of %d there", worker, round, n, size)
					return
				}
			}
		})
	}
	wg.Wait()
}
