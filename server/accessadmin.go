package server

import (
	"context"
	"errors"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/filter"
	"sluice/retrieve"
	"sluice/server/audit"
	"sluice/server/identity"
	"sluice/store"
)

// maxToldFailures bounds the failed changes of a preview that are told.
const maxToldFailures = 100

// importAccess streams changes of access rows, each of which is one of its own.
func (s *Server) importAccess(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	name, err := q.mediaType()
	if err != nil {
		return err
	}
	if name != "application/x-ndjson" {
		return failf(fasthttp.StatusUnsupportedMediaType, "Content-Type must be application/x-ndjson")
	}
	return s.stream(q, &ingestion{
		collection: collection,
		read:       readAccessLine,
		apply: func(ctx context.Context, w written) (client.WriteResult, error) {
			if err := checkKey(w.Key); err != nil {
				return client.WriteResult{}, err
			}
			r, err := q.changeAccess(ctx, collection, w.Key, w.AccessPatch)
			return r, clearly(err)
		},
	})
}

func readAccessLine(line []byte) (w written, err error) {
	var l client.AccessLine
	err = decode(line, &l)
	w.Key, w.AccessPatch = l.Key, l.Patch()
	return w, err
}

func (s *Server) previewAccess(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	var body client.AccessPreviewRequest
	if err := q.readJSON(&body); err != nil {
		return err
	}
	principals, err := q.previewed(body.Principals)
	if err != nil {
		return err
	}
	var supposed supposition
	var failed map[int]error
	var p retrieve.Preview
	err = q.audited(q.ctx, audit.Record{Action: audit.PreviewAccess, Collection: collection}, func() (_ uint64, err error) {
		if supposed, failed, err = suppositionOf(body); err != nil {
			return 0, err
		}
		p, err = s.backend.PreviewAccess(q.ctx, q.principal().Tenant, collection, supposed.Supposition, principals)
		return p.Epoch, err
	})
	if err != nil {
		return err
	}
	for i, err := range p.Failed {
		failed[supposed.lines[i]] = clearly(err)
	}
	return q.reply(fasthttp.StatusOK, previewOf(p, body.Changes, failed))
}

func (s *Server) getPolicies(q *request) error {
	source, err := s.backend.Policies(q.ctx)
	if err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, client.PolicyFiles{Schema: source.Schema, Files: source.Policies})
}

// supposition is one with, for each change, its place in the body.
type supposition struct {
	retrieve.Supposition
	lines []int
}

// suppositionOf returns what the body supposes, and what is wrong with changes
// by their places.
func suppositionOf(body client.AccessPreviewRequest) (s supposition, failed map[int]error, err error) {
	failed = map[int]error{}
	for i, line := range body.Changes {
		change, err := patchOf(line.Patch())
		if err = errors.Join(checkKey(line.Key), err); err != nil {
			failed[i] = err
			continue
		}
		s.Changes = append(s.Changes, retrieve.AccessChange{Key: line.Key, Change: change})
		s.lines = append(s.lines, i)
	}
	if body.Policies != nil {
		if body.Policies.Files == nil { // not the empty set, by which nobody reads anything
			return s, nil, badRequest("policies: files are missing")
		}
		s.Policies, err = filter.ParsePolicies(body.Policies.Schema, body.Policies.Files)
	}
	if err != nil {
		return s, nil, badRequest("policies: %s", shortened(err.Error()))
	}
	return s, failed, nil
}

func (q *request) previewed(given []client.Principal) (all []retrieve.Previewed, err error) {
	for i, one := range given {
		p, _, err := q.named(one)
		if err != nil {
			return nil, badRequest("principals: %d: %v", i, err)
		}
		all = append(all, retrieve.Previewed{Name: one.Subject, Principal: p})
	}
	return all, nil
}

// named is the principal of the caller's tenant that a body names: as it says,
// or, where it says nothing but the subject, as the configuration has it.
func (q *request) named(one client.Principal) (p filter.Principal, configured bool, err error) {
	tenant := q.principal().Tenant
	if one.Groups == nil && one.Attributes == nil {
		if p, known, err := q.s.identities.Load().Configured(tenant, one.Subject); known || err != nil {
			return p, true, err
		}
	}
	p, err = identity.PrincipalOf(tenant, one.Subject, one.Groups, one.Attributes)
	return p, false, err
}

func previewOf(p retrieve.Preview, changes []client.AccessLine, failed map[int]error) client.AccessPreview {
	answer := client.AccessPreview{
		Compared: p.Compared, LeftOut: p.LeftOut, Changed: p.Changed, Gained: p.Gained, Lost: p.Lost,
		Differences: []client.AccessDifference{}, Unfit: append([]string{}, p.Unfit...),
		Failed: []client.WriteResult{}, Failures: len(failed),
	}
	for _, d := range p.Differences {
		answer.Differences = append(answer.Differences, client.AccessDifference{
			Principal: d.Name, Gains: d.Gains, Loses: d.Loses, Gained: d.Gained, Lost: d.Lost,
		})
	}
	for i, change := range changes {
		if err := failed[i]; err != nil && len(answer.Failed) < maxToldFailures {
			result := failedResult(change.Key, err)
			result.Line = i + 1
			answer.Failed = append(answer.Failed, result)
		}
	}
	return answer
}

func (s *Server) explainAccess(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	var body client.AccessQuestion
	if err := q.readJSON(&body); err != nil {
		return err
	}
	if err := checkKey(body.Document); err != nil {
		return err
	}
	p, configured, err := q.named(body.Principal)
	if err != nil {
		return badRequest("principal: %v", err)
	}
	if _, err := s.backend.Collection(q.ctx, q.principal(), collection); err != nil {
		return err
	}
	var record store.Record
	var why filter.Explanation
	err = q.audited(q.ctx, audit.Record{Action: audit.ExplainAccess, Collection: collection, Document: body.Document}, func() (_ uint64, err error) {
		record, why, err = s.backend.ExplainAccess(q.ctx, p, collection, body.Document)
		return record.Epoch, err
	})
	if err != nil {
		return clearly(err)
	}
	return q.reply(fasthttp.StatusOK, explanationOf(p, configured, record, why))
}

// clearly says to an administrator that it is the document that is missing.
func clearly(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return failf(fasthttp.StatusNotFound, "the collection has no document with this key")
	}
	return err
}

func explanationOf(p filter.Principal, configured bool, r store.Record, why filter.Explanation) client.AccessExplanation {
	by := make([]string, len(why.Readers))
	for i, reader := range why.Readers {
		by[i] = string(reader)
	}
	return client.AccessExplanation{
		Principal:  client.Principal{Subject: p.Subject, Groups: p.Groups, Attributes: attributesInfo(p.Attributes)},
		Configured: configured,
		Document:   r.Key,
		Reads:      why.Admitted(),
		Readers:    client.ReadersVerdict{Admit: why.Listed(), Declared: !why.Undeclared, By: by},
		Policies: client.PoliciesVerdict{
			Permit: why.Permitted, Forbid: why.Forbidden, BuiltIn: why.Starter,
			By: append([]string{}, why.Decisive...), Errors: append([]string{}, why.Errors...),
			Attributes: attributesInfo(r.Access.Attributes),
		},
	}
}
