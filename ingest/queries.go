package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"sluice/filter"
	"sluice/statistics"
	"sluice/store"
)

const (
	relevanceDepth = 10

	// MaxQueries bounds a query set.
	MaxQueries = 10_000
)

// Query is one of a collection's query set: what its principal should find.
type Query struct {
	Text      string
	Relevant  []string // keys of documents
	Principal filter.Principal
}

// SetQueries replaces the query set of a collection; that of nobody else's tenant.
func (r *Reindexer) SetQueries(ctx context.Context, tenant, collection string, queries []Query) error {
	c, err := r.writer.store.Collection(ctx, tenant, collection)
	if err != nil {
		return err
	}
	if len(queries) > MaxQueries {
		return fmt.Errorf("%w: %d queries; at most %d are possible", store.ErrInvalid, len(queries), MaxQueries)
	}
	for i, q := range queries {
		if q.Text == "" || len(q.Relevant) == 0 {
			return fmt.Errorf("%w: query %d: needs text and at least one relevant document", store.ErrInvalid, i+1)
		}
		queries[i].Principal.Tenant = tenant
	}
	kept, err := json.Marshal(queries)
	if err != nil {
		return err
	}
	return r.writer.store.SetQueries(ctx, c.ID, kept)
}

// Queries returns the query set of a collection.
func (r *Reindexer) Queries(ctx context.Context, tenant, collection string) ([]Query, error) {
	c, err := r.writer.store.Collection(ctx, tenant, collection)
	if err != nil {
		return nil, err
	}
	return r.queries(ctx, c)
}

// ndcg is the nDCG of what was found, documents being what is relevant or not.
func ndcg(found, relevant []string) float64 {
	ranks := make([]int, len(relevant))
	for i, key := range relevant {
		ranks[i] = slices.Index(found, key) + 1
	}
	return statistics.NDCG(ranks, relevanceDepth)
}
