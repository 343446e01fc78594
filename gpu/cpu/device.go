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

// Device runs one model. It works on one batch at a time, with all its workers.
type Device struct {
	config  model.Config
	encoder model.Encoder // tables and norms; the layers' weights are packed
	layers  []*layer
	pool    func(dst, x []float32)
	mean    bool // pool is the mean
	gelu    func(x []float32)
	kernels *simd.Set

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
	d := &Device{config: m.Config, encoder: m.Encoder, kernels: kernels, pool: ref.MeanPool, mean: true, gelu: kernels.GELU}
	d.encoder.Layers = nil
	if m.Pooling == model.CLSPooling {
		d.pool, d.mean = ref.CLSPool, false
	}
	if m.Config.Activation == model.GELUTanh {
		d.gelu = ref.GELUTanh
	}
	d.team = newTeam(workers)
	d.ws.workers = make([]scratch, workers)
	return d
}

func (d *Device) packLayers(layers []model.Layer) {
	for _, l := range layers {
		d.layers = append(d.layers, packLayer(l))
	}
}

// Dimensions is the length of a vector.
func (d *Device) Dimensions() int { return d.config.Hidden }

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

// Embed implements gpu.Device. ctx is looked at between layers.
func (d *Device) Embed(ctx context.Context, batch *gpu.Batch, dst []float32) error {
	if err := d.check(batch); err != nil || batch.Len() == 0 {
		return err
	}
	if len(dst) != batch.Len()*d.Dimensions() {
		return fmt.Errorf("%w: room for %d numbers, want %d × %d", ErrInput, len(dst), batch.Len(), d.Dimensions())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	if d.narrow != nil {
		return d.narrow.embed(ctx, batch, dst)
	}
	d.lookup(batch)
	for _, l := range d.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.forward(l, batch.Offsets)
	}
	d.reduce(batch.Offsets, dst)
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
