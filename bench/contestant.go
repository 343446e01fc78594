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
	times     []time.Duration // of each run
	vectors   [][]float32     // of each sequence; or its logits
}

// contestant embeds token sequences, or scores them.
type contestant interface {
	name() string
	// run has ids done once to warm up and then runs times, timed.
	run(ctx context.Context, ids [][]int32, runs int) (turn, error)
	Close() error
}

// own is this program's device at one precision.
type own struct {
	device *cpu.Device
	batch  gpu.Batch
	scores bool
}

func newOwn(m *model.Model, threads int, p cpu.Precision) (*own, error) {
	device, err := cpu.NewPrecision(m, threads, p)
	return &own{device: device}, err
}

func (o *own) name() string { return o.device.Precision() }

func (o *own) Close() error { return o.device.Close() }

func (o *own) run(ctx context.Context, ids [][]int32, runs int) (turn, error) {
	o.fill(ids)
	width := o.device.Dimensions()
	if o.scores {
		width = o.device.Labels()
	}
	answers := make([]float32, len(ids)*width)
	out := gpu.Output{Pooled: answers}
	if o.scores {
		out = gpu.Output{Logits: answers}
	}
	if err := o.device.Run(ctx, &o.batch, out); err != nil {
		return turn{}, err
	}
	t := turn{vectors: rows(answers, width), times: make([]time.Duration, runs)}
	wall, used := time.Now(), cpuTime()
	for i := range t.times {
		began := time.Now()
		if err := o.device.Run(ctx, &o.batch, out); err != nil {
			return turn{}, err
		}
		t.times[i] = time.Since(began)
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
