package milvus

import (
	"context"
	"errors"
	"slices"
	"time"
)

const sweepRetry = 5 * time.Second

// garbage are rows that a batch has replaced. They are needed by the states
// before it, and, until it is durable, by who opens the index anew.
type garbage struct {
	last  uint64 // state that needs them
	epoch uint64 // of the batch
	shard int
	rows  []uint32
}

// discard has rows deleted when nobody needs them.
func (ix *Index) discard(g garbage) {
	if len(g.rows) == 0 {
		return
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.garbage = append(ix.garbage, g)
}

func (ix *Index) released(number uint64) {
	ix.mu.Lock()
	delete(ix.open, number)
	ix.mu.Unlock()
	ix.wakeSweeper()
}

func (ix *Index) wakeSweeper() {
	select {
	case ix.wake <- struct{}{}:
	default:
	}
}

// sweepLoop deletes garbage until ctx ends. What is left then, the next Open finds.
func (ix *Index) sweepLoop(ctx context.Context) {
	defer close(ix.done)
	for {
		select {
		case <-ix.wake:
		case <-ctx.Done():
			return
		}
		if err := ix.sweep(ctx); err != nil && ctx.Err() == nil {
			ix.options.Log.Warn("rows of former versions could not be deleted; trying again", "index", ix.options.Name, "error", err)
			wait(ctx, sweepRetry)
			ix.wakeSweeper()
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// sweep deletes what nobody can ask for any more.
func (ix *Index) sweep(ctx context.Context) error {
	var errs []error
	for i, rows := range ix.takeGarbage() {
		if len(rows) == 0 {
			continue
		}
		if err := ix.shards[i].delete(ctx, rows); err != nil {
			ix.discard(garbage{shard: i, rows: rows})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// takeGarbage returns the rows, by shard, that nobody needs any more.
func (ix *Index) takeGarbage() [][]uint32 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	oldest := ^uint64(0)
	for number := range ix.open {
		oldest = min(oldest, number)
	}
	rows := make([][]uint32, len(ix.shards))
	ix.garbage = slices.DeleteFunc(ix.garbage, func(g garbage) bool {
		if g.last >= oldest || g.epoch > ix.postings.Applied() {
			return false
		}
		rows[g.shard] = append(rows[g.shard], g.rows...)
		return true
	})
	return rows
}
