package retrieve

import (
	"context"
	"fmt"
	"slices"

	"sluice/store"
)

// scanPage is how many records a scan reads at a time.
const scanPage = 1024

// scan ranks everything that may be read, by late interaction; whole is false
// where that is more rows than the plan scans.
func (q *query) scan(ctx context.Context) (found []candidate, whole bool, err error) {
	rows, whole, err := q.visibleRows(ctx)
	if err != nil || !whole {
		return nil, whole, err
	}
	defer q.ended("scan")
	if err := q.embed(ctx); err != nil && q.given.tokens == nil {
		return nil, true, err
	}
	found, err = q.late(ctx, leg{}, rows)
	return found, true, err
}

// visibleRows lists the rows of all allowed documents, each decided again by
// the store's present access row.
func (q *query) visibleRows(ctx context.Context) (rows []candidate, whole bool, err error) {
	defer q.ended("recheck")
	if q.allowed.Len() > q.plan.ScanRows {
		return nil, false, nil
	}
	ordinals := make([]uint32, 0, q.allowed.Len())
	for ordinal := range q.allowed.Each {
		ordinals = append(ordinals, ordinal)
	}
	for page := range slices.Chunk(ordinals, scanPage) {
		records, err := q.engine.store.Records(ctx, q.at.ID, page)
		if err != nil {
			return nil, false, fmt.Errorf("rechecking access: %w", err)
		}
		for _, ordinal := range page {
			if rows, err = q.appendRows(rows, records[ordinal]); err != nil {
				return nil, false, err
			}
			if len(rows) > q.plan.ScanRows {
				return nil, false, nil
			}
		}
	}
	return rows, true, nil
}

// appendRows adds the rows of a record, if it may be read; one that is gone has
// none. The store may show a version before it is durable; what the index
// holds came from the feed, and so is.
func (q *query) appendRows(rows []candidate, r store.Record) ([]candidate, error) {
	if r.Rows == 0 || !q.at.index.Holds(r.Ordinal, r.FirstRow) {
		return rows, nil
	}
	admitted, err := q.admits(r)
	if err != nil || !admitted {
		return rows, err
	}
	for i := range r.Rows {
		c := candidate{row: r.FirstRow + i, ordinal: r.Ordinal, coded: r.Coded && r.Model == q.plan.Model}
		if q.request.Explain {
			c.legs = map[string]LegRank{}
		}
		rows = append(rows, c)
	}
	return rows, nil
}
