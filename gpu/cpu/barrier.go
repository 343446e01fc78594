package cpu

import (
	"sync"
	"sync/atomic"
)

// spins is how often a barrier looks before it sleeps: longer than workers
// that run are apart, about as long as it takes to wake one that does not.
const spins = 1 << 13

// barrier lets size goroutines wait for each other, again and again.
type barrier struct {
	size    int32
	arrived atomic.Int32
	round   atomic.Uint32
	mu      sync.Mutex
	next    sync.Cond
}

func newBarrier() *barrier {
	b := &barrier{}
	b.next.L = &b.mu
	return b
}

func (b *barrier) wait() {
	round := b.round.Load()
	if b.arrived.Add(1) == b.size {
		b.arrived.Store(0)
		b.mu.Lock()
		b.round.Add(1)
		b.mu.Unlock()
		b.next.Broadcast()
		return
	}
	for range spins {
		if b.round.Load() != round {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.round.Load() == round {
		b.next.Wait()
	}
}
