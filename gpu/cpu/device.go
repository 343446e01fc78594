// Package cpu runs encoders on the CPU.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
)

var (
	// ErrInput is wrapped where a batch does not fit the model.
	ErrInput = errors.New("invalid batch")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("device is closed")
)

// Device runs one model. It works on one batch at a time, with all its workers.
type Device struct {
	config   model.Config
	encoder  model.Encoder // tables and norms; the layers' weights are packed
	layers   []*layer
	head     *head
	relative *relative // nil: attention looks at no distances
	ropes    map[model.Attention]*rope
	activate func(x []float32)
	kernels  *simd.Set

	activateRow func(at int, x []float32) // activate, for multiply

	precision Precision
	narrow    *narrow // in place of layers where precision is not F32

	mu     sync.Mutex // guards what follows
	team   *team
	ws     workspace
	closed bool
}

var _ gpu.Device = (*Device)(nil)

// New prepares a float32 device for m, which it does not need afterwards.
// workers ≤ 0 means one per available core.
func New(m *model.Model, workers int) *Device {
	return newDevice(m, workers, simd.Best())
}

func newDevice(m *model.Model, workers int, kernels *simd.Set) *Device {
	return newPrecision(m, workers, F32, kernels)
}

// prepare makes a device without its layers.
func prepare(m *model.Model, workers int, kernels *simd.Set) *Device {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	d := &Device{config: m.Config, encoder: m.Encoder, kernels: kernels, ropes: map[model.Attention]*rope{}}
	d.encoder.Layers = nil
	if m.Encoder.Relative != nil {
		d.relative = newRelative(m.Config, m.Encoder.Relative)
	}
	d.head = newHead(m, kernels)
	d.activate = activation(m.Config.Activation, kernels)
	d.activateRow = func(_ int, x []float32) { d.activate(x) }
	d.team = newTeam(workers)
	d.ws.workers = make([]scratch, workers)
	return d
}

// Dimensions is the length of a pooled vector.
func (d *Device) Dimensions() int { return d.head.dimensions }

// Labels is the number of logits per sequence.
func (d *Device) Labels() int { return d.head.labels }

// Precision is the same whichever kernels run: they differ in the last bits only.
func (d *Device) Precision() string { return string(d.precision) }

// Kernels names the instruction set in use.
func (d *Device) Kernels() string { return d.kernels.Level }

// Close ends the workers after the batch in progress.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.team.close()
	}
	return nil
}

// Run implements gpu.Device. ctx is looked at between layers.
func (d *Device) Run(ctx context.Context, batch *gpu.Batch, out gpu.Output) error {
	if err := d.check(batch); err != nil || batch.Len() == 0 {
		return err
	}
	if err := d.checkOutput(batch, out); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	if d.narrow != nil {
		return d.narrow.run(ctx, batch, out)
	}
	d.lookup(batch)
	for _, l := range d.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.forward(l, batch.Offsets)
	}
	d.finish(batch.Offsets, out)
	return nil
}

func (d *Device) checkOutput(b *gpu.Batch, out gpu.Output) error {
	if out.Logits != nil && d.Labels() == 0 {
		return fmt.Errorf("%w: logits are asked of a model without a classification head", ErrInput)
	}
	for _, o := range []struct {
		numbers     []float32
		rows, width int
	}{
		{out.Pooled, b.Len(), d.Dimensions()}, {out.Norms, b.Len(), 1},
		{out.Tokens, b.Tokens(), d.config.Hidden}, {out.Logits, b.Len(), d.Labels()},
	} {
		if o.numbers != nil && len(o.numbers) != o.rows*o.width {
			return fmt.Errorf("%w: room for %d numbers, want %d × %d", ErrInput, len(o.numbers), o.rows, o.width)
		}
	}
	return nil
}

// check makes sure that nothing later can leave a table or a buffer.
func (d *Device) check(b *gpu.Batch) error {
	if len(b.Types) != len(b.IDs) || (b.Len() > 0 && (b.Offsets[0] != 0 || b.Offsets[b.Len()] != len(b.IDs))) {
		return fmt.Errorf("%w: %d ids, %d type ids, offsets %v", ErrInput, len(b.IDs), len(b.Types), b.Offsets)
	}
	for i := range b.Len() {
		if n := b.Offsets[i+1] - b.Offsets[i]; n < 1 || n > d.config.Positions {
			return fmt.Errorf("%w: sequence %d has %d tokens, the model takes 1 to %d", ErrInput, i, n, d.config.Positions)
		}
	}
	for i, id := range b.IDs {
		if id < 0 || int(id) >= d.config.Vocabulary || !d.hasType(b.Types[i]) {
			return fmt.Errorf("%w: token id %d of type %d is outside the model's tables", ErrInput, id, b.Types[i])
		}
	}
	return nil
}

// hasType admits any type where the model makes no difference.
func (d *Device) hasType(kind int32) bool {
	return d.config.Types < 2 || (kind >= 0 && int(kind) < d.config.Types)
}
