package retrieve

import (
	"context"
	"errors"
	"fmt"

	"sluice/filter"
	"sluice/store"
)

// Document returns one document the principal may read. Missing and forbidden
// alike are store.ErrNotFound.
func (e *Engine) Document(ctx context.Context, p filter.Principal, collection, key string) (store.Content, error) {
	at, err := e.serving.acquire(p.Tenant, collection, 0)
	if err != nil {
		return store.Content{}, err
	}
	defer at.release()
	record, err := e.store.Lookup(ctx, at.ID, key)
	if err != nil {
		return store.Content{}, err
	}
	content, err := e.store.Content(ctx, at.ID, record.Ordinal, false)
	if err != nil {
		return store.Content{}, err
	}
	admitted, err := e.decider(at, p).admits(content.Access)
	if err != nil || !admitted {
		return store.Content{}, errors.Join(err, store.ErrNotFound)
	}
	return content, nil
}

// List returns up to limit documents the principal may read, in order of
// creation, after the one with the given key ("" starts), and whether more follow.
func (e *Engine) List(ctx context.Context, p filter.Principal, collection, after string, limit int) (page []store.Record, more bool, err error) {
	at, err := e.serving.acquire(p.Tenant, collection, 0)
	if err != nil {
		return nil, false, err
	}
	defer at.release()
	from, err := e.listFrom(ctx, at, p, after)
	if err != nil {
		return nil, false, err
	}
	visible, err := at.view.Resolve(p)
	if err != nil {
		return nil, false, fmt.Errorf("resolving what may be read: %w", err)
	}
	return e.page(ctx, at, p, visible, from, limit)
}

// listFrom turns the cursor, the key of a document the principal has seen, into
// the ordinal to go on from.
func (e *Engine) listFrom(ctx context.Context, at *snapshot, p filter.Principal, after string) (uint32, error) {
	if after == "" {
		return 0, nil
	}
	record, err := e.store.Lookup(ctx, at.ID, after)
	if err == nil {
		var admitted bool
		if admitted, err = e.decider(at, p).admits(record.Access); err == nil && admitted {
			return record.Ordinal + 1, nil
		}
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	return 0, fmt.Errorf("%w: the cursor's document is gone; start the listing again", store.ErrInvalid)
}

// page collects limit admitted records from the ordinal on, and one to see whether more follow.
func (e *Engine) page(ctx context.Context, at *snapshot, p filter.Principal, visible filter.Set, from uint32, limit int) ([]store.Record, bool, error) {
	var found []store.Record
	var wanted []uint32
	for ordinal := range visible.From(from) {
		if wanted = append(wanted, ordinal); len(wanted) <= limit {
			continue
		}
		records, err := e.admitted(ctx, at, p, wanted)
		if err != nil {
			return nil, false, err
		}
		if found = append(found, records...); len(found) > limit {
			return found[:limit], true, nil
		}
		wanted = wanted[:0]
	}
	records, err := e.admitted(ctx, at, p, wanted)
	if err != nil {
		return nil, false, err
	}
	found = append(found, records...)
	return found[:min(limit, len(found))], len(found) > limit, nil
}

// admitted returns the present records of the ordinals that the principal may read.
func (e *Engine) admitted(ctx context.Context, at *snapshot, p filter.Principal, ordinals []uint32) (admitted []store.Record, err error) {
	records, err := e.store.Records(ctx, at.ID, ordinals)
	if err != nil {
		return nil, err
	}
	decider := e.decider(at, p)
	for _, ordinal := range ordinals {
		record, exists := records[ordinal]
		if !exists {
			continue
		}
		ok, err := decider.admits(record.Access)
		if err != nil {
			return nil, err
		}
		if ok {
			admitted = append(admitted, record)
		}
	}
	return admitted, nil
}
