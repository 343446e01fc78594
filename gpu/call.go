package gpu

import (
	"context"
	"sync"
	"time"
)

// call is one Embed.
type call struct {
	ctx      context.Context
	priority Priority
	tokens   bool // token vectors are wanted
	arrived  time.Time
	results  []Embedding
	done     chan struct{}

	// Guarded by the scheduler's lock.
	waiting [buckets]entry

	mu   sync.Mutex // guards what follows
	left int        // texts without a vector; 0: done is closed
	err  error
}

// item is one tokenized text of a call.
type item struct {
	call       *call
	text       int
	ids, types []int32
	queued     time.Time
}

// newCall makes a call with n texts, each with a vector of so many numbers.
func newCall(ctx context.Context, n, width int, r Request) *call {
	c := &call{
		ctx: ctx, priority: r.Priority, tokens: r.TokenVectors, arrived: time.Now(),
		results: make([]Embedding, n), left: n, done: make(chan struct{}),
	}
	vectors := make([]float32, n*width)
	for i := range c.results {
		c.results[i].Vector = vectors[i*width : (i+1)*width : (i+1)*width]
	}
	return c
}

// wait returns when all texts have their vectors, the call failed, or its
// context ended.
func (c *call) wait() error {
	select {
	case <-c.done:
		return c.err
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// over reports whether nobody waits for c any more.
func (c *call) over() bool {
	if c.ctx.Err() != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left == 0
}

// fail ends the call early; the first error counts.
func (c *call) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		c.left, c.err = 0, err
		close(c.done)
	}
}

// deliver copies text i of b.
func (c *call) deliver(b *batch, i int, l *lane) {
	it := b.items[i]
	result := &c.results[it.text]
	vector, tokens := b.vectors(i, l)
	copy(result.Vector, vector)
	if c.tokens {
		result.TokenVectors = append([]float32(nil), tokens...)
	}
	if len(b.norms) > 0 {
		result.Norm = b.norms[i]
	}
	result.Timing.Queue, result.Timing.Run = b.began.Sub(it.queued), b.took
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return // it failed meanwhile, and nobody looks at the results
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}
