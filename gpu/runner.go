package gpu

import (
	"context"
	"fmt"
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
}

// run delivers every item. Where the device refuses a batch, its texts are
// tried one by one, so that only the culprit's call fails.
func (r *runner) run(ctx context.Context, items []item) {
	err := r.embed(ctx, items)
	switch {
	case err == nil:
		for i, it := range items {
			it.call.set(it.text, r.vectors[i*r.device.Dimensions():][:r.device.Dimensions()])
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
	if size := len(items) * r.device.Dimensions(); cap(r.vectors) < size {
		r.vectors = make([]float32, size)
	}
	r.vectors = r.vectors[:len(items)*r.device.Dimensions()]
	return r.device.Run(ctx, &r.batch, Output{Pooled: r.vectors})
}
