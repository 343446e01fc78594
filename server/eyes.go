package server

import (
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/server/audit"
	"sluice/server/identity"
)

// eyesHeader holds a client.Principal as JSON.
const eyesHeader = "X-Sluice-As"

// openEyes has an administrator look through the eyes of a principal of the
// tenant, on routes that only read, and only where it is recorded.
func (q *request) openEyes() error {
	given := q.http.Request.Header.PeekAll(eyesHeader)
	switch {
	case len(given) == 0:
		return nil
	case len(given) > 1:
		return badRequest("%s is there twice", eyesHeader)
	case q.who.Role < identity.Admin:
		return failf(fasthttp.StatusForbidden, "your role does not allow %s", eyesHeader)
	case !q.route.eyes:
		return badRequest("%s is for searching, listing and reading documents", eyesHeader)
	case q.s.audit == nil:
		return failf(fasthttp.StatusForbidden, "%s needs the audit log, which audit.directory turns off", eyesHeader)
	}
	var named client.Principal
	if err := decode(given[0], &named); err != nil {
		return err
	}
	p, _, err := q.named(named)
	if err != nil {
		return badRequest("%s: %v", eyesHeader, err)
	}
	q.eyes = &p
	return nil
}

// look answers through another principal's eyes, between two records of it.
func (q *request) look() error {
	record := audit.Record{
		Action: audit.Look, Collection: q.vars["collection"], Document: q.vars["key"],
		As: q.eyes.Subject, AsPrincipal: audit.Digest(*q.eyes),
	}
	return q.audited(q.ctx, record, func() (uint64, error) { return q.s.backend.Epoch(), q.route.serve(q.s, q) })
}
