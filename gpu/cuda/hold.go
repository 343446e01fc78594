package cuda

import (
	"context"
	"fmt"

	"sluice/gpu/cuda/wire"
)

// holdPart is how much is sent at once, so that batches of texts come between.
const holdPart = 1 << 20

// hold puts size bytes on the device; fill appends those from one place to
// another, both multiples of unit.
func (l *life) hold(ctx context.Context, number uint32, size, unit int, fill func(dst []byte, from, to int) []byte) error {
	part := max(holdPart/unit, 1) * unit
	for at := 0; at < size; at += part {
		err := l.holdPart(ctx, number, size, at, func(dst []byte) []byte { return fill(dst, at, min(at+part, size)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *life) holdPart(ctx context.Context, number uint32, size, at int, fill func(dst []byte) []byte) error {
	ctx, cancel := patience(ctx)
	defer cancel()
	return l.do(ctx, call{}, func(dst []byte, id uint32) ([]byte, error) { return wire.AppendHold(dst, id, number, size, at, fill) })
}

// drop gives memory back. A worker that does not even read it is killed.
func (l *life) drop(number uint32) {
	ctx, cancel := patience(context.Background())
	defer cancel()
	err := l.send(ctx, 0, func(dst []byte, _ uint32) ([]byte, error) { return wire.AppendDrop(dst, number) })
	if err != nil {
		l.end(fmt.Errorf("%w: writing to it: %w", ErrWorker, err))
	}
}

// search fills found.
func (l *life) search(ctx context.Context, s wire.Search, found wire.Found) error {
	ctx, cancel := patience(ctx)
	defer cancel()
	return l.do(ctx, call{found: found}, func(dst []byte, id uint32) ([]byte, error) { return wire.AppendSearch(dst, id, s) })
}

// patience ends as cancelled when ctx ends, in whatever way, and by deadline
// when a worker hangs, which is killed then.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTime)
	stop := context.AfterFunc(ctx, cancel)
	return patient, func() {
		stop()
		cancel()
	}
}
