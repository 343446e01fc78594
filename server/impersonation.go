package server

import (
	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/server/audit"
	"sluice/server/identity"
)

// impersonateHeader holds a client.Principal as JSON.
const impersonateHeader = "X-Sluice-Impersonate"

// formerHeader is its former name: who sends that would be answered as themselves.
const formerHeader = "X-Sluice-As"

// impersonate has an administrator impersonate a principal of the tenant, on routes that
// only read, and only where it is recorded.
func (q *request) impersonate() error {
	given := q.http.Request.Header.PeekAll(impersonateHeader)
	switch {
	case len(q.http.Request.Header.PeekAll(formerHeader)) > 0:
		return badRequest("%s is called %s now", formerHeader, impersonateHeader)
	case len(given) == 0:
		return nil
	case len(given) > 1:
		return badRequest("%s is there twice", impersonateHeader)
	case q.who.Role < identity.Admin:
		return failf(fasthttp.StatusForbidden, "your role does not allow %s", impersonateHeader)
	case !q.route.impersonate:
		return badRequest("%s is for searching, listing and reading documents", impersonateHeader)
	case q.s.audit == nil:
		return failf(fasthttp.StatusForbidden, "%s needs the audit log, which audit.directory turns off", impersonateHeader)
	}
	var named client.Principal
	if err := decode(given[0], &named); err != nil {
		return err
	}
	p, _, err := q.named(named)
	if err != nil {
		return badRequest("%s: %v", impersonateHeader, err)
	}
	q.impersonated = &p
	return nil
}

// serveImpersonated answers as another principal, between two records of it.
func (q *request) serveImpersonated() error {
	record := audit.Record{
		Action: audit.Impersonate, Collection: q.vars["collection"], Document: q.vars["key"],
		As: q.impersonated.Subject, AsPrincipal: audit.Digest(*q.impersonated),
	}
	return q.audited(q.ctx, record, func() (uint64, error) { return q.s.backend.Epoch(), q.route.serve(q.s, q) })
}
