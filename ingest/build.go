package ingest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/gpu"
	"sluice/index"
	"sluice/store"
)

// pass builds what the generation lacks, and says whether that was anything.
func (r *Reindexer) pass(ctx context.Context, c store.Collection, g store.Generation, n *run) (missing bool, err error) {
	built, of := 0, 0
	err = r.pairs(ctx, c.Serving().ID, g.ID, func(serving store.Record, its *store.Record) error {
		of++
		if !lacks(serving, its) {
			built++
		}
		return nil
	})
	if err != nil || built == of {
		n.starts(built, of)
		return false, err
	}
	n.starts(built, of)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(buildsAtOnce)
	err = r.pairs(ctx, c.Serving().ID, g.ID, func(serving store.Record, its *store.Record) error {
		if lacks(serving, its) {
			group.Go(index.Guarded(func() error { return r.build(ctx, c, serving, g, n) }))
		}
		return ctx.Err()
	})
	return true, cmp.Or(group.Wait(), err)
}

// lacks reports a document that is not built, or not in its present version.
func lacks(serving store.Record, built *store.Record) bool {
	return built == nil || built.Version != serving.Version
}

// build adds a document while the job is this daemon's. It waits where the device
// cannot take more, or is restarting: interactive requests go first.
func (r *Reindexer) build(ctx context.Context, c store.Collection, record store.Record, g store.Generation, n *run) error {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		if err := r.holds(ctx, c, n.claim); err != nil {
			return err
		}
		count, _, err := r.writer.rebuild(ctx, c, record, g)
		if err == nil || !errors.Is(err, gpu.ErrOverloaded) && !errors.Is(err, gpu.ErrDevice) {
			n.built(count)
			r.add(count)
			return err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Reindexer) add(count Embeddings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count = r.count.plus(count)
}
