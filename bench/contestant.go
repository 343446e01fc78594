package bench

import (
	"context"
	"time"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/model"
)

// turn is what some runs of a contestant took, and what they yielded.
type turn struct {
	wall, cpu time.Duration
	vectors   [][]float32
}

// contestant embeds token sequences.
type contestant interface {
	name() string
	// run embeds ids once to warm up and then runs times, timed.
	run(ctx context.Context, ids [][]int32, runs int) (turn, error)
	Close() error
}

// own is this program's device at one precision.
type own struct {
	device *cpu.Device
	batch  gpu.Batch
}

func newOwn(m *model.Model, threads int, p cpu.Precision) (*own, error) {
	device, err := cpu.NewPrecision(m, threads, p)
	return &own{device: device}, err
}

func (o *own) name() string { return o.device.Precision() }

func (o *own) Close() error { return o.device.Close() }

func (o *own) run(ctx context.Context, ids [][]int32, runs int) (turn, error) {
	o.fill(ids)
	vectors := make([]float32, len(ids)*o.device.Dimensions())
	if err := o.device.Run(ctx, &o.batch, gpu.Output{Pooled: vectors}); err != nil {
		return turn{}, err
	}
	t := turn{vectors: rows(vectors, o.device.Dimensions())}
	wall, used := time.Now(), cpuTime()
	for range runs {
		if err := o.device.Run(ctx, &o.batch, gpu.Output{Pooled: vectors}); err != nil {
			return turn{}, err
		}
	}
	t.wall, t.cpu = time.Since(wall), cpuTime()-used
	return t, nil
}

func (o *own) fill(ids [][]int32) {
	o.batch.Reset()
	for _, sequence := range ids {
		o.batch.Append(sequence, make([]int32, len(sequence)))
	}
}

func rows(x []float32, width int) (r [][]float32) {
	for ; len(x) > 0; x = x[width:] {
		r = append(r, x[:width])
	}
	return r
}
