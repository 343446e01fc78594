package retrieve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	gateWait       = 2 * time.Second // for the feed, before a search is refused
	retainedEpochs = 1 << 18         // of the feed that a checkpoint leaves to the other daemons
)

// ErrLagging says that a search was not begun: what is served here is behind
// the store, or how far the store is cannot be known.
var ErrLagging = errors.New("this daemon has not caught up with the store")

// Shared is for a store that other daemons write too: nothing is searched, listed
// or shown before the feed has brought here all that the store had when the
// request came, or, with a staleness, had so long before at most.
func Shared(staleness time.Duration) Option {
	return func(s *Serving) {
		s.gate, s.retained = &gate{epoch: s.store.Epoch, staleness: staleness, now: time.Now}, retainedEpochs
	}
}

// gate knows how far the feed must have come for a search to begin. One read of
// the store's epoch serves all searches that came before it began.
type gate struct {
	epoch     func(context.Context) (uint64, error)
	staleness time.Duration
	now       func() time.Time

	mu      sync.Mutex
	next    *reading // what those who come now wait for; nil: nobody has come
	under   bool     // a reading is under way
	reached time.Time
	readers sync.WaitGroup
}

// reading is one read of the epoch.
type reading struct {
	done  chan struct{} // closed when the rest is set
	began time.Time
	epoch uint64
	err   error
}

// pass blocks until the Serving has reached an epoch that was the store's after
// the call began.
func (g *gate) pass(ctx context.Context, s *Serving) error {
	if g == nil || g.fresh() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, gateWait)
	defer cancel()
	r, err := g.read(bounded)
	if err == nil {
		err = s.Await(bounded, r.epoch)
	}
	switch {
	case err == nil:
		g.passed(r.began)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrBehind), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %v", ErrLagging, err)
	}
	return err
}

// fresh reports whether what was reached last is recent enough.
func (g *gate) fresh() bool {
	if g.staleness <= 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now().Sub(g.reached) < g.staleness
}

// passed remembers that all of the store at that time is here.
func (g *gate) passed(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.After(g.reached) {
		g.reached = at
	}
}

// read joins the next reading, and starts it unless one is under way.
func (g *gate) read(ctx context.Context) (*reading, error) {
	g.mu.Lock()
	if g.next == nil {
		g.next = &reading{done: make(chan struct{})}
	}
	r := g.next
	if !g.under {
		g.under = true
		g.readers.Go(g.readAll)
	}
	g.mu.Unlock()
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readAll reads until nobody waits.
func (g *gate) readAll() {
	for {
		g.mu.Lock()
		r := g.next
		g.next, g.under = nil, r != nil
		g.mu.Unlock()
		if r == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), gateWait)
		r.began = g.now()
		r.epoch, r.err = g.epoch(ctx)
		cancel()
		close(r.done)
	}
}

// close waits for the reading under way. Searches must have ended.
func (g *gate) close() {
	if g != nil {
		g.readers.Wait()
	}
}
