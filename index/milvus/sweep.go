package milvus

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

const sweepRetry = 5 * time.Second

// garbage are rows that a batch has replaced. They are needed by the states
// before it, until it is durable by who opens the index anew, and for some time
// by other daemons.
type garbage struct {
	last  uint64 // state that needs them
	epoch uint64 // of the batch
	due   time.Time
	shard int
	rows  []uint32
}

// discard has rows deleted when nobody needs them.
func (ix *Index) discard(g garbage) {
	if len(g.rows) == 0 {
		return
	}
	if others := ix.options.Shared; others > 0 {
		// Not all at once: who comes later finds that there is nothing left to delete.
		g.due = time.Now().Add(others + rand.N(others))
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
		if !ix.awaitGarbage(ctx) {
			return
		}
		if err := ix.sweep(ctx); err != nil && ctx.Err() == nil {
			ix.options.Log.Warn("rows of former versions could not be deleted; trying again", "index", ix.options.Name, "error", err)
			wait(ctx, sweepRetry)
			ix.wakeSweeper()
		}
	}
}

// awaitGarbage reports false when ctx has ended.
func (ix *Index) awaitGarbage(ctx context.Context) bool {
	timer := time.NewTimer(ix.nextDue())
	defer timer.Stop()
	select {
	case <-ix.wake:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// nextDue is how long it is until rows may go because of the time alone.
func (ix *Index) nextDue() time.Duration {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	next := time.Now().Add(time.Hour)
	for _, g := range ix.garbage {
		if g.due.Before(next) && time.Now().Before(g.due) {
			next = g.due
		}
	}
	return time.Until(next)
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
		if err := ix.erase(ctx, ix.shards[i].collection, rows); err != nil {
			ix.discard(garbage{shard: i, rows: rows})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// erase deletes rows, those that no other daemon has deleted.
func (ix *Index) erase(ctx context.Context, c *collection, rows []uint32) error {
	if ix.options.Shared > 0 {
		held, err := c.held(ctx, rows)
		if err != nil {
			return err
		}
		rows = slices.Sorted(maps.Keys(held))
	}
	return c.delete(ctx, rows)
}

// isLive reports a row that was taken for dead, and has turned out to be of a
// document that was not known yet.
func (ix *Index) isLive(row uint32) bool {
	ordinal, known := ix.owners.of(row)
	return known && ix.postings.Holds(ordinal, row)
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
		if g.last >= oldest || g.epoch > ix.postings.Applied() || time.Now().Before(g.due) {
			return false
		}
		rows[g.shard] = append(rows[g.shard], slices.DeleteFunc(g.rows, ix.isLive)...)
		return true
	})
	return rows
}
