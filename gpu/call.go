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
	turn    int // the scheduler's count of bulk batches that cannot delay the call any more

	mu   sync.Mutex // guards what follows
	left int        // texts without a vector; 0: done is closed
	err  error
}

// item is one tokenized text of a call.
type item struct {
	call       *call
	text       int
	ids, types []int32
}

func newCall(ctx context.Context, r Request, dimensions, turn int) *call {
	n := len(r.Texts)
	c := &call{
		ctx: ctx, priority: r.Priority, tokens: r.TokenVectors, arrived: time.Now(), turn: turn,
		results: make([]Embedding, n), left: n, done: make(chan struct{}),
	}
	vectors := make([]float32, n*dimensions)
	for i := range c.results {
		c.results[i].Vector = vectors[i*dimensions : (i+1)*dimensions : (i+1)*dimensions]
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

// deliver copies one text's vectors; tokens is empty if they are not wanted.
func (c *call) deliver(text int, vector, tokens []float32) {
	copy(c.results[text].Vector, vector)
	if c.tokens {
		c.results[text].TokenVectors = append([]float32(nil), tokens...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return // it failed meanwhile, and nobody looks at the results
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}
