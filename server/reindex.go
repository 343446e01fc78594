package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/client"
	"sluice/filter"
	"sluice/ingest"
	"sluice/server/audit"
)

const (
	eventsEvery = 500 * time.Millisecond // looks at a watched job
	heartbeat   = 30                     // looks without anything new, after which that is said
)

// Reindexer rebuilds collections by other chunkers. ingest.ErrBusy: 409.
type Reindexer interface {
	Estimate(ctx context.Context, tenant, collection, chunker string) (ingest.Estimate, error)
	Start(ctx context.Context, tenant, collection, chunker string, bound float64) (ingest.Status, error)
	Status(ctx context.Context, tenant, collection string) (ingest.Status, error)
	Pause(ctx context.Context, tenant, collection string) (ingest.Status, error)
	Resume(ctx context.Context, tenant, collection string, bound float64) (ingest.Status, error)
	Cancel(ctx context.Context, tenant, collection string) (ingest.Status, error)
	Rollback(ctx context.Context, tenant, collection string) (ingest.Status, error)
	Drop(ctx context.Context, tenant, collection string) (ingest.Status, error)
	SetQueries(ctx context.Context, tenant, collection string, queries []ingest.Query) error
	Queries(ctx context.Context, tenant, collection string) ([]ingest.Query, error)
}

// reindexing reads a request that names a chunker.
func (q *request) reindexing() (collection string, body client.ReindexRequest, bound float64, err error) {
	if collection, err = q.collection(); err != nil {
		return "", body, 0, err
	}
	if err = q.readJSON(&body); err != nil {
		return "", body, 0, err
	}
	bound, err = boundOf(body.Bound, ingest.DefaultBound)
	return collection, body, bound, err
}

func boundOf(given *float64, otherwise float64) (float64, error) {
	switch {
	case given == nil:
		return otherwise, nil
	case *given < 0 || *given > 1:
		return 0, badRequest("bound: a number from 0 to 1 is expected")
	}
	return *given, nil
}

// estimateReindex takes as long as the client waits: it reads every document.
func (s *Server) estimateReindex(q *request) error {
	collection, body, _, err := q.reindexing()
	if err != nil {
		return err
	}
	var e ingest.Estimate
	err = q.patient(func(ctx context.Context) (err error) {
		e, err = s.backend.Reindexer().Estimate(ctx, q.principal().Tenant, collection, body.Chunker)
		return err
	})
	if err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, estimateOf(e))
}

func (s *Server) startReindex(q *request) error {
	collection, body, bound, err := q.reindexing()
	if err != nil {
		return err
	}
	return q.regenerate(fasthttp.StatusAccepted, collection, "start", func(tenant string) (status ingest.Status, err error) {
		return status, q.patient(func(ctx context.Context) error {
			status, err = s.backend.Reindexer().Start(ctx, tenant, collection, body.Chunker, bound)
			return err
		})
	})
}

func (s *Server) changeReindex(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	var body client.ReindexChange
	if err := q.readJSON(&body); err != nil {
		return err
	}
	action := q.vars["action"]
	bound, err := boundOf(body.Bound, -1)
	if err != nil {
		return err
	}
	if body.Bound != nil && action != "resume" {
		return badRequest("bound: is for resume only")
	}
	r := s.backend.Reindexer()
	changes := map[string]func(context.Context, string, string) (ingest.Status, error){
		"pause": r.Pause, "cancel": r.Cancel, "rollback": r.Rollback, "drop": r.Drop,
		"resume": func(ctx context.Context, tenant, collection string) (ingest.Status, error) {
			return r.Resume(ctx, tenant, collection, bound)
		},
	}
	change, known := changes[action]
	if !known {
		return failf(fasthttp.StatusNotFound, "use pause, resume, cancel, rollback or drop")
	}
	return q.regenerate(fasthttp.StatusOK, collection, action, func(tenant string) (ingest.Status, error) {
		return change(q.ctx, tenant, collection)
	})
}

// regenerate does what changes generations, and answers with them.
func (q *request) regenerate(code int, collection, action string, do func(tenant string) (ingest.Status, error)) error {
	var status ingest.Status
	err := q.audited(q.ctx, audit.Record{Action: audit.Reindex, Collection: collection, Document: action}, func() (_ uint64, err error) {
		if status, err = do(q.principal().Tenant); err != nil {
			return 0, err
		}
		return q.s.backend.Epoch(), nil
	})
	if err != nil {
		return err
	}
	return q.reply(code, generationsOf(status))
}

func (s *Server) getReindex(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	status, err := s.backend.Reindexer().Status(q.ctx, q.principal().Tenant, collection)
	if err != nil {
		return err
	}
	return q.reply(fasthttp.StatusOK, generationsOf(status))
}

func (s *Server) watchReindex(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	if _, err := s.backend.Reindexer().Status(q.ctx, q.principal().Tenant, collection); err != nil {
		return err
	}
	q.streamEvents(&events{q: q, collection: collection, closed: make(chan struct{})})
	return nil
}

// events is the stream of a job's states: one at once, then each that differs
// from the one before, until no job runs, the client goes or the daemon drains.
// Every 15 seconds without one a comment keeps proxies from closing the stream,
// and has a client that has gone be noticed.
type events struct {
	q          *request
	collection string
	closed     chan struct{}
	pending    []byte
	last       []byte
	quiet      int // looks since there was anything to say
	ended      bool
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.pending) == 0 {
		if e.ended || e.last != nil && !e.pause() {
			return 0, io.EOF
		}
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	_ = e.q.http.SetWriteDeadline(time.Now().Add(e.q.s.limits.ReadTimeout))
	return n, nil
}

func (e *events) pause() bool {
	timer := time.NewTimer(eventsEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.closed:
	case <-e.q.s.serving.Done():
	}
	return false
}

// next puts an event into pending, if there is something new, or a heartbeat.
func (e *events) next() error {
	ctx, cancel := context.WithTimeout(e.q.s.base, e.q.s.limits.RequestTimeout)
	defer cancel()
	status, err := e.q.s.backend.Reindexer().Status(ctx, e.q.principal().Tenant, e.collection)
	if err != nil {
		return err
	}
	text, err := json.Marshal(generationsOf(status))
	if err != nil {
		return err
	}
	e.ended = status.Progress == nil
	switch e.quiet++; {
	case !bytes.Equal(text, e.last):
		e.pending, e.quiet = event(text), 0
	case e.quiet == heartbeat:
		e.pending, e.quiet = []byte(": nothing new\n\n"), 0
	}
	e.last = text
	return nil
}

func (e *events) Close() error {
	close(e.closed)
	e.q.finish()
	return nil
}

func (s *Server) putQueries(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	var body client.QuerySet
	if err := q.readWritten(&body); err != nil {
		return err
	}
	if body.Queries == nil { // not the empty list, which removes them all
		return badRequest("queries: a list is expected")
	}
	queries := make([]ingest.Query, len(body.Queries))
	for i, one := range body.Queries {
		p, _, err := q.named(one.Principal)
		if err != nil {
			return badRequest("queries: %d: %v", i, err)
		}
		queries[i] = ingest.Query{Text: one.Query, Relevant: one.Relevant, Principal: p}
	}
	err = q.audited(q.ctx, audit.Record{Action: audit.SetQueries, Collection: collection}, func() (uint64, error) {
		return s.backend.Epoch(), s.backend.Reindexer().SetQueries(q.ctx, q.principal().Tenant, collection, queries)
	})
	if err != nil {
		return err
	}
	q.http.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

func (s *Server) getQueries(q *request) error {
	collection, err := q.collection()
	if err != nil {
		return err
	}
	queries, err := s.backend.Reindexer().Queries(q.ctx, q.principal().Tenant, collection)
	if err != nil {
		return err
	}
	set := client.QuerySet{Queries: make([]client.JudgedQuery, len(queries))}
	for i, one := range queries {
		set.Queries[i] = client.JudgedQuery{Query: one.Text, Relevant: one.Relevant, Principal: principalOf(one.Principal)}
	}
	return q.reply(fasthttp.StatusOK, set)
}

func principalOf(p filter.Principal) client.Principal {
	return client.Principal{Subject: p.Subject, Groups: p.Groups, Attributes: p.Attributes}
}

func generationsOf(s ingest.Status) client.Generations {
	out := client.Generations{Generations: make([]client.Generation, len(s.Generations))}
	for i, g := range s.Generations {
		out.Generations[i] = generationOf(g)
	}
	if p := s.Progress; p != nil {
		out.Progress = &client.ReindexProgress{
			Documents: p.Documents, Of: p.Of, Embedded: p.New, Reused: p.Reused, Rate: p.Rate, Left: p.Left.Seconds(),
		}
	}
	return out
}

func generationOf(g ingest.GenerationStatus) client.Generation {
	out := client.Generation{ID: g.ID, Role: g.Role.String(), Chunker: g.Chunker, Created: g.Created}
	if g.Job.State == "" {
		return out
	}
	out.Job = &client.ReindexJob{
		State: string(g.Job.State), Reason: g.Job.Reason, Started: g.Job.Started,
		Estimate: estimateOf(g.Job.Estimate), Bound: g.Job.Bound, Embedded: g.Job.Made.New, Reused: g.Job.Made.Reused, Gates: make([]client.ReindexGate, len(g.Job.Gates)),
	}
	if !g.Job.Ended.IsZero() {
		out.Job.Ended = &g.Job.Ended
	}
	for i, gate := range g.Job.Gates {
		out.Job.Gates[i] = client.ReindexGate(gate)
	}
	return out
}

func estimateOf(e ingest.Estimate) client.ReindexEstimate {
	return client.ReindexEstimate{
		Chunker: e.Chunker, Documents: e.Documents, Chunks: e.Chunks, New: e.New, Reused: e.Reused,
		Tokens: e.Tokens, Seconds: e.Duration.Seconds(), Bytes: e.Bytes,
	}
}
