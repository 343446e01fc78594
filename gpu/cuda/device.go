package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
	"sluice/model"
)

// ErrWorker is wrapped where a worker does not answer: it died, hangs, or is
// being started again. The same batch may succeed later.
var ErrWorker = errors.New("the GPU worker does not answer")

// Precision is what the kernels have: weights and activations in bfloat16, sums
// in float32. Vectors can be mixed with those of gpu/cpu's precision of that name.
const Precision = "bf16"

// Device runs one model on a worker, beside the worker's other models.
type Device struct {
	worker     *worker
	number     int // of the model
	config     model.Config
	dimensions int
	labels     int
	close      sync.Once
}

var _ gpu.Device = (*Device)(nil)

func newDevice(w *worker, number int, m *model.Model) *Device {
	d := &Device{worker: w, number: number, config: m.Config, dimensions: m.Dimensions()}
	if m.Classifier != nil {
		d.labels = len(m.Classifier.Labels)
	}
	w.hold()
	return d
}

// Dimensions is the length of a pooled vector.
func (d *Device) Dimensions() int { return d.dimensions }

// Labels is the number of logits per sequence.
func (d *Device) Labels() int { return d.labels }

// Precision is Precision.
func (d *Device) Precision() string { return Precision }

// Close ends the worker with the last of its devices.
func (d *Device) Close() (err error) {
	d.close.Do(func() { err = d.worker.release() })
	return err
}

// Run implements gpu.Device. A worker that has no answer when ctx's deadline
// passes is killed. Errors wrap ErrWorker, gpu.ErrInput, or are a wire.Failure.
func (d *Device) Run(ctx context.Context, batch *gpu.Batch, out gpu.Output) error {
	if err := gpu.Check(d, d.config, batch, out); err != nil || batch.Len() == 0 {
		return err
	}
	if out.Pooled == nil {
		out.Norms = nil // they come with vectors only
	}
	return d.worker.run(ctx, d.number, batch, out)
}

// failureError turns what a worker says into what callers branch on.
func failureError(f wire.Failure) error {
	switch f.Code {
	case wire.CodeInput:
		return fmt.Errorf("%w: %w", gpu.ErrInput, f)
	case wire.CodeModel:
		return fmt.Errorf("loading the model onto the GPU: %w", f)
	}
	return f
}
