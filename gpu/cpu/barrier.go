package cpu

import (
	"runtime"
	"sync/atomic"
)

// barrier lets size goroutines wait for each other, again and again. They
// spin, since the waits are far shorter than it takes to wake a goroutine.
type barrier struct {
	size    int32
	arrived atomic.Int32
	round   atomic.Uint32
}

func (b *barrier) wait() {
	round := b.round.Load()
	if b.arrived.Add(1) == b.size {
		b.arrived.Store(0)
		b.round.Add(1)
		return
	}
	for spins := 0; b.round.Load() == round; spins++ {
		if spins > 1<<12 {
			runtime.Gosched()
		}
	}
}
