package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// worker is who runs batches: one of two that take turns on a processor, or a
// caller.
type worker struct {
	scheduler *Scheduler
	spare     *batch // empty; nil while a run has it
	part      *batch // of a batch that failed
	yield     func() // giveWay, made once

	// Of the batch in progress.
	began time.Time
	stood atomic.Bool // still, for a while: how long it took says nothing
}

// run is one batch under way.
type run struct {
	*worker
	processor int
	lane      *lane
	device    *device
	priority  Priority
	batch     *batch
}

// work runs batches on one processor.
func (w *worker) work(processor int) {
	for r := w.scheduler.next(processor, w); r != nil; r = w.scheduler.next(processor, w) {
		r.do()
	}
}

// do has the batch run.
func (r *run) do() { r.settle(r.try(r.scheduler.base, r.batch)) }

// lead is do for a caller, who does not wait for what has to be found out about
// a batch that failed.
func (r *run) lead() {
	err := r.try(r.scheduler.base, r.batch)
	if err == nil {
		r.leave(nil)
		return
	}
	r.scheduler.running.Go(func() { r.leave(err) })
}

func (r *run) leave(err error) {
	r.settle(err)
	r.scheduler.guests.Put(r.worker)
}

// settle frees the processor of a batch that was run before it delivers: the
// next batch need not wait for that.
func (r *run) settle(err error) {
	b := r.batch
	if err != nil {
		r.diagnose(r.scheduler.base, b, err)
	}
	r.scheduler.end(r, b.input.Tokens(), b.took, err)
	if err == nil {
		r.scheduler.options.Hooks.Batch(r.lane.info.Model, r.priority, len(b.items), b.input.Tokens(), b.took)
		r.deliver(b)
	}
	b.reset()
	r.spare = b
}

// try runs b on the device. It fails if no text's vectors are numbers, which
// says more of the device than of the texts.
func (r *run) try(ctx context.Context, b *batch) error {
	b.began, b.input.GiveWay = time.Now(), nil
	if r.began = b.began; r.priority == Bulk {
		b.input.GiveWay = r.yield
	}
	err := r.call(ctx, &b.input, b.output(r.lane))
	b.took = time.Since(b.began)
	if err != nil {
		return err
	}
	for i := range b.items {
		if b.sound(i, r.lane) {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", ErrDevice, errNotFinite)
}

// call has the device fill out, in the time it has for that.
func (r *run) call(ctx context.Context, input *Batch, out Output) error {
	ctx, cancel := context.WithTimeout(ctx, r.scheduler.options.BatchTime)
	defer cancel()
	return r.device.run(ctx, input, out)
}

// run turns a panic into an error.
func (d *device) run(ctx context.Context, input *Batch, out Output) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrDevice, r, debug.Stack())
		}
	}()
	if err := d.Run(ctx, input, out); err != nil {
		return fmt.Errorf("%w: %w", ErrDevice, err)
	}
	return nil
}

// deliver hands out the vectors of a batch that ran. A text whose vectors are
// not numbers fails alone.
func (r *run) deliver(b *batch) {
	for i, it := range b.items {
		if !b.sound(i, r.lane) {
			r.fail(it, fmt.Errorf("%w: %w", ErrDevice, errNotFinite))
			continue
		}
		it.call.deliver(b, i, r.lane)
	}
}

func (r *run) fail(it item, err error) {
	it.call.fail(fmt.Errorf("running text %d: %w", it.text, err))
}

// diagnose delivers what it can of a batch that failed. If the device fails a
// harmless batch too, it is the device: the batch's texts fail, and the device
// is retired. Otherwise it is a text.
func (r *run) diagnose(ctx context.Context, b *batch, err error) {
	if ctx.Err() != nil {
		r.failAll(b.items, ErrClosed)
		return
	}
	r.scheduler.options.Hooks.Failure(r.lane.info.Model, r.processor, err)
	if probe := r.probe(ctx); probe != nil {
		r.scheduler.retire(r, probe)
		r.failAll(b.items, err)
		return
	}
	r.isolate(ctx, b.items, err)
}

func (r *run) failAll(items []item, err error) {
	for _, it := range items {
		r.fail(it, err)
	}
}

// isolate runs the halves of texts that failed together on their own, until
// those that fail are alone, or take too long. n texts take 2n - 2 runs at most,
// and at most log2(n) times as long as a batch of all.
func (r *run) isolate(ctx context.Context, items []item, err error) {
	if len(items) == 1 || errors.Is(err, context.DeadlineExceeded) {
		r.failAll(items, err)
		return
	}
	for _, half := range [][]item{items[:len(items)/2], items[len(items)/2:]} {
		r.part.set(half)
		if err := r.try(ctx, r.part); err != nil {
			r.isolate(ctx, half, err)
		} else {
			r.deliver(r.part)
		}
	}
}

// probe sees whether the device can do a word.
func (r *run) probe(ctx context.Context) error {
	answer := make([]float32, r.lane.width)
	out := Output{Pooled: answer}
	if r.lane.scores {
		out = Output{Logits: answer}
	}
	if err := r.call(ctx, &r.lane.probe, out); err != nil {
		return err
	}
	if !finite(answer) {
		return fmt.Errorf("%w: %w", ErrDevice, errNotFinite)
	}
	return nil
}
