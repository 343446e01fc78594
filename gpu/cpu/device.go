// Package cpu runs encoders on the CPU.
package cpu

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
)

// ErrClosed is returned after Close.
var ErrClosed = errors.New("device is closed")

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

var _ gpu.Prompt = (*Device)(nil)

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

// Prompt implements gpu.Prompt: a batch ends after the layer or the chunk in progress.
func (d *Device) Prompt() {}

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
	if err := gpu.Check(d, d.config, batch, out); err != nil || batch.Len() == 0 {
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
		giveWay(batch)
		d.forward(l, batch.Offsets)
	}
	d.finish(batch.Offsets, out)
	return nil
}

// giveWay lets the goroutines that wait for a processor go before a batch that can
// wait: else they wait for its end, or for the runtime to take the processor after
// 10 ms.
func giveWay(batch *gpu.Batch) {
	if batch.GiveWay != nil {
		batch.GiveWay()
	}
}
