package server

import (
	"cmp"
	"context"

	"github.com/valyala/fasthttp"

	"sluice/retrieve"
	"sluice/server/audit"
)

// audited does an administrative action between two records of it. Where the
// settings want it so, it is not done if the first cannot be written.
// do returns the epoch at which what it did holds, with an error, too, if it did
// something; 0: nothing.
func (q *request) audited(ctx context.Context, r audit.Record, do func() (epoch uint64, err error)) error {
	r.Request, r.Tenant, r.Subject = q.id, q.who.Principal.Tenant, q.who.Principal.Subject
	r.Principal = audit.Digest(q.who.Principal)
	var failed error
	refused := q.s.audit.Administrative(ctx, r, func() (epoch uint64, status int) {
		if epoch, failed = do(); failed != nil {
			return epoch, failureOf(failed).status
		}
		return epoch, fasthttp.StatusOK
	})
	return cmp.Or(refused, failed)
}

// auditSearch records a search that is answered.
func (q *request) auditSearch(collection string, r retrieve.Response) error {
	return q.s.audit.Search(q.ctx, audit.Record{
		Stage: audit.End, Action: audit.Search, Request: q.id, Principal: audit.Digest(q.who.Principal),
		Collection: collection, Status: fasthttp.StatusOK, Epoch: r.Epoch, Plan: r.PlanHash,
		Counts: &audit.Counts{Visible: r.Visible, OutOfScope: r.OutOfScope, Results: len(r.Results)},
	})
}
