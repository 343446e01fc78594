// Package cpu runs encoders on the CPU.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

var (
	// ErrInput is wrapped where a batch does not fit the model.
	ErrInput = errors.New("invalid batch")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("device is closed")
)

// Device runs one model in float32. It works on one batch at a time, with all
// its workers.
type Device struct {
	config  model.Config
	encoder model.Encoder // tables and norms; the layers' weights are packed
	layers  []*layer
	pool    func(dst, x []float32)
	gelu    func(x []float32)
	kernels *simd.Set

	mu     sync.Mutex // guards what follows
	team   *team
	ws     workspace
	closed bool
}

var _ gpu.Device = (*Device)(nil)

// New prepares a device for m, which it does not need afterwards. workers ≤ 0
// means one per available core.
func New(m *model.Model, workers int) *Device {
	return newDevice(m, workers, simd.Best())
}

func newDevice(m *model.Model, workers int, kernels *simd.Set) *Device {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	d := &Device{config: m.Config, encoder: m.Encoder, kernels: kernels, pool: ref.MeanPool, gelu: kernels.GELU}
	d.encoder.Layers = nil
	if m.Pooling == model.CLSPooling {
		d.pool = ref.CLSPool
	}
	if m.Config.Activation == model.GELUTanh {
		d.gelu = ref.GELUTanh
	}
	for _, l := range m.Encoder.Layers {
		d.layers = append(d.layers, packLayer(l))
	}
	d.team = newTeam(workers)
	d.ws.workers = make([]scratch, workers)
	return d
}

// Dimensions is the length of a vector.
func (d *Device) Dimensions() int { return d.config.Hidden }

// Labels is 0: these models have no classification head.
func (d *Device) Labels() int { return 0 }

// Precision is f32, whichever kernels run: they differ in the last bits only.
func (d *Device) Precision() string { return "f32" }

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
	d.lookup(batch)
	for _, l := range d.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.forward(l, batch.Offsets)
	}
	if out.Pooled != nil {
		d.reduce(batch.Offsets, out.Pooled)
	}
	copy(out.Tokens, d.ws.x)
	return nil
}

func (d *Device) checkOutput(b *gpu.Batch, out gpu.Output) error {
	if out.Logits != nil {
		return fmt.Errorf("%w: logits are asked of a model without a classification head", ErrInput)
	}
	if out.Pooled != nil && len(out.Pooled) != b.Len()*d.Dimensions() {
		return fmt.Errorf("%w: room for %d numbers, want %d × %d", ErrInput, len(out.Pooled), b.Len(), d.Dimensions())
	}
	if out.Tokens != nil && len(out.Tokens) != b.Tokens()*d.Dimensions() {
		return fmt.Errorf("%w: room for %d numbers, want %d × %d", ErrInput, len(out.Tokens), b.Tokens(), d.Dimensions())
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
		if id < 0 || int(id) >= d.config.Vocabulary || b.Types[i] < 0 || int(b.Types[i]) >= d.config.Types {
			return fmt.Errorf("%w: token id %d of type %d is outside the model's tables", ErrInput, id, b.Types[i])
		}
	}
	return nil
}
