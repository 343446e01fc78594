package retrieve

import (
	"context"
	"fmt"

	"sluice/filter"
	"sluice/store"
)

// recheck drops every candidate that the store, as it is now, does not let the
// principal read: whatever was revoked, replaced or deleted since the snapshot.
func (q *query) recheck(ctx context.Context, candidates []candidate) ([]candidate, error) {
	defer q.ended("recheck")
	ordinals := make([]uint32, 0, len(candidates))
	for _, c := range candidates {
		ordinals = append(ordinals, c.ordinal)
	}
	records, err := q.engine.store.Records(ctx, q.at.ID, ordinals)
	if err != nil {
		return nil, fmt.Errorf("rechecking access: %w", err)
	}
	verdicts := map[uint32]bool{}
	kept := candidates[:0]
	for _, c := range candidates {
		record, exists := records[c.ordinal]
		if !exists || !holds(record, c.row) {
			continue
		}
		admitted, known := verdicts[c.ordinal]
		if !known {
			if admitted, err = q.admits(record); err != nil {
				return nil, err
			}
			verdicts[c.ordinal] = admitted
		}
		if admitted {
			c.coded = record.Coded && record.Model == q.plan.Model
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// holds reports whether the row is one of the document's present version.
func holds(r store.Record, row uint32) bool {
	return row >= r.FirstRow && row-r.FirstRow < r.Rows
}

// admits decides one document by its present access row and the present policies.
func (q *query) admits(r store.Record) (bool, error) {
	admitted, err := q.decider.admits(r.Access)
	if err != nil {
		return false, fmt.Errorf("rechecking access: %w", err)
	}
	return admitted && filter.Applies(r.Access.Applicability, q.scope), nil
}
