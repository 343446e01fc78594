// Package graph runs encoders as expression graphs of Gorgonia: the operations
// are Gorgonia's, and own ones where it has none or its are not exact enough.
// It shares no arithmetic with gpu/cpu, whose oracle it is.
package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/model"
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("device is closed")
	// ErrPanic is wrapped where Gorgonia panicked over a sequence.
	ErrPanic = errors.New("the expression graph panicked")
)

// Device runs one model, one sequence after the other: each has a graph of its
// own, which is given up after it.
type Device struct {
	config     model.Config
	dimensions int
	labels     int

	mu      sync.Mutex
	weights *weights // nil: closed
}

var _ gpu.Device = (*Device)(nil)

// New prepares a device for m, whose numbers it shares.
func New(m *model.Model) *Device {
	d := &Device{config: m.Config, dimensions: m.Dimensions(), weights: newWeights(m)}
	if m.Classifier != nil {
		d.labels = len(m.Classifier.Labels)
	}
	return d
}

// Dimensions is the length of a pooled vector.
func (d *Device) Dimensions() int { return d.dimensions }

// Labels is the number of logits per sequence.
func (d *Device) Labels() int { return d.labels }

// Precision is that of gpu/cpu's float32: they differ in the last bits only.
func (d *Device) Precision() string { return "f32" }

// Close gives up the weights after the batch in progress.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.weights = nil
	return nil
}

// Run implements gpu.Device. ctx is looked at before every operation.
func (d *Device) Run(ctx context.Context, batch *gpu.Batch, out gpu.Output) error {
	if err := gpu.Check(d, d.config, batch, out); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.weights == nil {
		return ErrClosed
	}
	for i := range batch.Len() {
		if err := d.runSequence(ctx, batch, i, out); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return nil
}

// runSequence fills sequence i's part of out. Gorgonia panics where it is not
// satisfied; that ends here.
func (d *Device) runSequence(ctx context.Context, batch *gpu.Batch, i int, out gpu.Output) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
		}
	}()
	from, to := batch.Offsets[i], batch.Offsets[i+1]
	e := newExpression(d.config, d.weights, batch.IDs[from:to], batch.Types[from:to])
	roots := e.roots(out)
	values, err := evaluate(ctx, e.graph, roots)
	if err != nil {
		return err
	}
	d.write(values, i, from, out)
	return nil
}

// write copies what the roots are worth, in their order, to sequence i's part
// of out; its tokens begin at first.
func (d *Device) write(values [][]float32, i, first int, out gpu.Output) {
	if out.Tokens != nil {
		copy(out.Tokens[first*d.config.Hidden:], values[0])
		values = values[1:]
	}
	if out.Pooled != nil {
		v := out.Pooled[i*d.dimensions:][:d.dimensions]
		copy(v, values[0])
		norm := ref.Normalize(v)
		if out.Norms != nil {
			out.Norms[i] = float32(norm)
		}
		values = values[1:]
	}
	if out.Logits != nil {
		copy(out.Logits[i*d.labels:][:d.labels], values[0])
	}
}
