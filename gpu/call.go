package gpu

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// call is one Embed. Only the scheduler's goroutine touches it after enqueue,
// until done is closed.
type call struct {
	ctx     context.Context
	tokens  Batch
	results []Embedding
	next    int // the first text that was not taken yet
	left    int // texts without a vector
	err     error
	done    chan struct{}

	tokenVectors bool // wanted
}

func newCall(ctx context.Context, texts, dimensions int) *call {
	c := &call{ctx: ctx, results: make([]Embedding, texts), left: texts, done: make(chan struct{})}
	c.tokens.Reset()
	vectors := make([]float32, texts*dimensions)
	for i := range c.results {
		c.results[i].Vector = vectors[i*dimensions : (i+1)*dimensions : (i+1)*dimensions]
	}
	return c
}

// over reports whether nobody waits for c any more.
func (c *call) over() bool { return c.left == 0 || c.ctx.Err() != nil }

func (c *call) length(text int) int { return c.tokens.Offsets[text+1] - c.tokens.Offsets[text] }

// finish ends the call early; the first error counts.
func (c *call) finish(err error) {
	if c.left > 0 {
		c.left, c.err, c.results = 0, err, nil
		close(c.done)
	}
}

// set delivers the vector of one text, and its tokens' where they are wanted.
func (c *call) set(text int, vector, tokens []float32) {
	if c.left == 0 {
		return
	}
	if !finite(vector) || !finite(tokens) {
		c.finish(fmt.Errorf("text %d: the model's vector is not finite", text))
		return
	}
	copy(c.results[text].Vector, vector)
	if c.tokenVectors {
		c.results[text].TokenVectors = slices.Clone(tokens)
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}
