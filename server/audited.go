package server

import (
	"context"

	"github.com/valyala/fasthttp"

	"sluice/retrieve"
	"sluice/server/audit"
)

// audited does an administrative action between two records of it. Where the
// settings want it so, it is not done if the first cannot be written.
// do is as of audit.Log.Administrative.
func (q *request) audited(ctx context.Context, r audit.Record, do func() (epoch uint64, err error)) error {
	r.Request, r.Tenant, r.Subject = q.id, q.who.Principal.Tenant, q.who.Principal.Subject
	r.Principal = audit.Digest(q.who.Principal)
	return q.s.audit.Administrative(ctx, r, func(err error) int { return failureOf(err).status }, do)
}

// auditSearch records a search that is answered: who asked, and as whom.
func (q *request) auditSearch(collection string, r retrieve.Response) error {
	record := audit.Record{
		Stage: audit.End, Action: audit.Search, Request: q.id, Principal: audit.Digest(q.who.Principal),
		Collection: collection, Status: fasthttp.StatusOK, Epoch: r.Epoch, Plan: r.PlanHash,
		Counts: &audit.Counts{Visible: r.Visible, OutOfScope: r.OutOfScope, Results: len(r.Results)},
	}
	if q.impersonated != nil {
		record.AsPrincipal = audit.Digest(*q.impersonated)
	}
	return q.s.audit.Search(q.ctx, record)
}
