package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/store"
)

// turn has the generation of a role serve, and keeps the one that served.
func turn(live []store.Generation, role store.Role, at time.Time) error {
	for i, g := range live {
		switch g.Role {
		case role:
			live[i].Role = store.Serving
		case store.Serving:
			job, err := jobOf(g)
			job.Retired = at
			if err = cmp.Or(err, job.keep(&live[i])); err != nil {
				return err
			}
			live[i].Role = store.Previous
		}
	}
	return nil
}

// checkFree reports what must be out of the way before a job begins.
func checkFree(live []store.Generation) error {
	switch {
	case has(live, store.Building):
		return fmt.Errorf("%w: a reindex of this collection is there already; cancel it first", ErrBusy)
	case has(live, store.Previous):
		return fmt.Errorf("%w: the generation before the present one is still kept; drop it first", ErrBusy)
	}
	return nil
}

func has(live []store.Generation, role store.Role) bool {
	_, there := store.Collection{Generations: live}.Generation(role)
	return there
}

// Drop removes the generation that is kept for a rollback.
func (r *Reindexer) Drop(ctx context.Context, tenant, collection string) (Status, error) {
	return r.drop(ctx, tenant, collection, store.Previous, "no generation is kept for a rollback")
}

// drop removes the generation of a role when nobody reads it any more.
func (r *Reindexer) drop(ctx context.Context, tenant, collection string, role store.Role, absent string) (Status, error) {
	c, err := r.writer.store.Collection(ctx, tenant, collection)
	if err != nil {
		return Status{}, err
	}
	g, there := c.Generation(role)
	if !there {
		return Status{}, fmt.Errorf("%w: %s", ErrBusy, absent)
	}
	if role == store.Building {
		r.halt(c.ID, func(n *run) bool { return n.generation == g.ID })
	}
	if err := errors.Join(r.await(ctx), r.serving.Idle(ctx, g.ID)); err != nil {
		return Status{}, err
	}
	return r.change(ctx, tenant, collection, func(live []store.Generation) (next []store.Generation, err error) {
		for _, l := range live {
			if l.ID != g.ID {
				next = append(next, l)
			} else if l.Role != role {
				return nil, fmt.Errorf("%w: generation %d is %s by now", ErrBusy, l.ID, l.Role)
			} else if err := r.unread(l); err != nil {
				return nil, err
			}
		}
		return next, nil
	})
}

// Rollback has the previous generation serve again, and keeps the one that serves.
func (r *Reindexer) Rollback(ctx context.Context, tenant, collection string) (Status, error) {
	return r.change(ctx, tenant, collection, func(live []store.Generation) ([]store.Generation, error) {
		if !has(live, store.Previous) {
			return nil, fmt.Errorf("%w: no generation is kept for a rollback", ErrBusy)
		}
		return live, turn(live, store.Previous, r.now().UTC())
	})
}
