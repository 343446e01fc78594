package local

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

func (ix *Index) wakeMerger() {
	select {
	case ix.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// quietTime without a commit means that nothing is being ingested.
const quietTime = 10 * time.Second

// mergeLoop keeps the number of sealed segments small until Close, and smaller
// when nothing is being ingested. A merge that fails changes nothing; the next
// commit causes another try.
func (ix *Index) mergeLoop(ctx context.Context) {
	defer close(ix.done)
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		pace := pace{limit: ix.options.MergeLimit}
		select {
		case <-ctx.Done():
			return
		case <-ix.wake:
			quiet.Reset(quietTime)
		case <-quiet.C:
			pace.atRest = true
		}
		if ix.options.manualMerge {
			continue
		}
		if err := ix.mergeAll(ctx, pace); err != nil && ctx.Err() == nil {
			ix.options.Log.Warn("merging index segments; it is tried again later", "dir", ix.dir, "error", err)
		}
	}
}

// Compact merges sealed segments now until nothing more is worthwhile, as the
// background does once nothing is ingested, but as fast as it can, and returns
// when it is done.
func (ix *Index) Compact(ctx context.Context) error {
	if err := ix.mergeAll(ctx, settled); err != nil {
		return fmt.Errorf("compacting index %s: %w", ix.dir, err)
	}
	return nil
}

// mergeAll merges until nothing more is worthwhile, one caller at a time.
func (ix *Index) mergeAll(ctx context.Context, pace pace) error {
	select {
	case ix.merging <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-ix.merging }()
	for {
		if merged, err := ix.merge(ctx, pace); err != nil || !merged {
			return err
		}
	}
}

// merge replaces a few sealed segments by one, if that is worthwhile. It
// holds the lock only to choose and to switch; what is deleted meanwhile is
// carried over.
func (ix *Index) merge(ctx context.Context, pace pace) (merged bool, err error) {
	base, picked, id, err := ix.beginMerge(ctx, pace)
	if err != nil || len(picked) == 0 {
		return false, err
	}
	defer base.release()
	defer ix.pending.Store(0)
	var seg *segment
	if countLive(picked) > 0 {
		if seg, err = ix.writeSegment(ctx, id, picked, ix.options.lists(countLive(picked)), pace.limit); err != nil {
			return false, err
		}
		defer seg.release()
	}
	return true, ix.endMerge(ctx, picked, seg)
}

// beginMerge returns what to merge, held by the snapshot it also returns.
func (ix *Index) beginMerge(ctx context.Context, pace pace) (base *snapshot, picked []part, id uint64, err error) {
	if err := ix.lock(ctx); err != nil {
		return nil, nil, 0, err
	}
	defer ix.unlock()
	if picked = pickMerge(ix.current.parts, ix.options, pace); len(picked) == 0 {
		return nil, nil, 0, nil
	}
	ix.current.acquire()
	id = ix.takeID()
	ix.pending.Store(id)
	return ix.current, picked, id, nil
}

// endMerge switches to the merged segment; nil: nothing of it was live.
func (ix *Index) endMerge(ctx context.Context, picked []part, seg *segment) error {
	if err := ix.lock(ctx); err != nil {
		return err
	}
	defer ix.unlock()
	var parts []part
	meanwhile := roaring.New()
	for _, p := range ix.current.parts {
		i := slices.IndexFunc(picked, func(old part) bool { return old.seg == p.seg })
		if i < 0 {
			parts = append(parts, p)
		} else if p.deleted != nil {
			meanwhile.Or(roaring.AndNot(p.deleted, cloneBitmap(picked[i].deleted)))
		}
	}
	if seg != nil {
		parts = append(parts, part{seg: seg}.without(meanwhile.ToArray()))
	}
	return ix.commit(ctx, parts)
}
