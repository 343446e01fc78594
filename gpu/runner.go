package gpu

import (
	"context"
	"fmt"
	"slices"
)

// item is one text of a call.
type item struct {
	call *call
	text int
}

// runner runs batches and reuses their memory.
type runner struct {
	device  Device
	batch   Batch
	vectors []float32
	tokens  []float32 // Tokens × Dimensions; empty where no call wants them
}

// run delivers every item. Where the device refuses a batch, its texts are
// tried one by one, so that only the culprit's call fails.
func (r *runner) run(ctx context.Context, items []item) {
	err := r.embed(ctx, items)
	switch {
	case err == nil:
		for i, it := range items {
			it.call.set(it.text, r.vectors[i*r.device.Dimensions():][:r.device.Dimensions()], r.tokensOf(i))
		}
	case ctx.Err() != nil:
		for _, it := range items {
			it.call.finish(ErrClosed)
		}
	case len(items) == 1:
		items[0].call.finish(fmt.Errorf("embedding text %d: %w", items[0].text, err))
	default:
		for i := range items {
			r.run(ctx, items[i:i+1])
		}
	}
}

func (r *runner) embed(ctx context.Context, items []item) error {
	r.batch.Reset()
	for _, it := range items {
		t := &it.call.tokens
		from, to := t.Offsets[it.text], t.Offsets[it.text+1]
		r.batch.Append(t.IDs[from:to], t.Types[from:to])
	}
	out := Output{Pooled: resized(&r.vectors, len(items)*r.device.Dimensions())}
	r.tokens = r.tokens[:0]
	if slices.ContainsFunc(items, func(it item) bool { return it.call.tokenVectors }) {
		out.Tokens = resized(&r.tokens, r.batch.Tokens()*r.device.Dimensions())
	}
	return r.device.Run(ctx, &r.batch, out)
}

// tokensOf is the token vectors of the batch's i-th text, or nil.
func (r *runner) tokensOf(i int) []float32 {
	if len(r.tokens) == 0 {
		return nil
	}
	return r.tokens[r.batch.Offsets[i]*r.device.Dimensions() : r.batch.Offsets[i+1]*r.device.Dimensions()]
}

// resized makes s n long; its content is undefined.
func resized(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return *s
}
