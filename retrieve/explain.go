package retrieve

import (
	"context"

	"sluice/filter"
	"sluice/store"
)

// Explain says what decides whether the principal may read the document, by the
// store's present row and the policies in force. store.ErrNotFound: there is no
// such document.
func (e *Engine) Explain(ctx context.Context, p filter.Principal, collection, key string) (store.Record, filter.Explanation, error) {
	at, err := e.serving.acquire(p.Tenant, collection, 0)
	if err != nil {
		return store.Record{}, filter.Explanation{}, err
	}
	defer at.release()
	record, err := e.store.Lookup(ctx, at.ID, key)
	if err != nil {
		return store.Record{}, filter.Explanation{}, err
	}
	return record, e.serving.policiesInForce().Explain(p, record.Access), nil
}
