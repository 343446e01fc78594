package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/filter"
	"sluice/ingest"
	"sluice/server/identity"
	"sluice/store"
)

// fakeReindexer keeps what it is asked, and tells of a job that is done after
// some looks at it.
type fakeReindexer struct {
	mu      sync.Mutex
	calls   []string
	looks   int // left until the job is done
	queries []ingest.Query
	err     error

	onEstimate func(context.Context) error
}

func (f *fake) Reindexer() Reindexer { return &f.reindexes }

func (r *fakeReindexer) called(format string, args ...any) (ingest.Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
	return r.status(), r.err
}

func (r *fakeReindexer) status() ingest.Status {
	building := ingest.GenerationStatus{
		Generation: store.Generation{ID: 2, Role: store.Building, Chunker: "structure/1", Created: time.Unix(1700000000, 0).UTC()},
		Job:        ingest.Job{State: ingest.Running, Estimate: ingest.Estimate{Documents: 7}, Bound: 0.5, Gates: []ingest.Gate{{Name: "structure", Passed: true}}},
	}
	s := ingest.Status{Generations: []ingest.GenerationStatus{{Generation: store.Generation{ID: 1, Role: store.Serving}}, building}}
	if r.looks > 0 {
		r.looks--
		s.Progress = &ingest.Progress{Documents: 7 - r.looks, Of: 7, Left: time.Minute}
	}
	return s
}

func (r *fakeReindexer) Estimate(ctx context.Context, tenant, c, chunker string) (ingest.Estimate, error) {
	if r.onEstimate != nil {
		return ingest.Estimate{}, r.onEstimate(ctx)
	}
	_, err := r.called("estimate %s %s %s", tenant, c, chunker)
	return ingest.Estimate{Chunker: chunker, Documents: 7, New: 3, Duration: time.Second}, err
}

func (r *fakeReindexer) Start(_ context.Context, tenant, c, chunker string, bound float64) (ingest.Status, error) {
	return r.called("start %s %s %s %v", tenant, c, chunker, bound)
}

func (r *fakeReindexer) Status(context.Context, string, string) (ingest.Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status(), r.err
}

func (r *fakeReindexer) Pause(_ context.Context, tenant, c string) (ingest.Status, error) {
	return r.called("pause %s %s", tenant, c)
}

func (r *fakeReindexer) Resume(_ context.Context, tenant, c string, bound float64) (ingest.Status, error) {
	return r.called("resume %s %s %v", tenant, c, bound)
}

func (r *fakeReindexer) Cancel(_ context.Context, tenant, c string) (ingest.Status, error) {
	return r.called("cancel %s %s", tenant, c)
}

func (r *fakeReindexer) Rollback(_ context.Context, tenant, c string) (ingest.Status, error) {
	return r.called("rollback %s %s", tenant, c)
}

func (r *fakeReindexer) Drop(_ context.Context, tenant, c string) (ingest.Status, error) {
	return r.called("drop %s %s", tenant, c)
}

func (r *fakeReindexer) SetQueries(_ context.Context, _, _ string, queries []ingest.Query) error {
	r.queries = queries
	return r.err
}

func (r *fakeReindexer) Queries(context.Context, string, string) ([]ingest.Query, error) {
	return r.queries, r.err
}

func TestReindexRoutes(t *testing.T) {
	d := start(t)
	api, half := d.as("root"), 0.5
	e, err := api.EstimateReindex(t.Context(), "c", client.ReindexRequest{Chunker: "structure/1"})
	require.NoError(t, err)
	require.Equal(t, client.ReindexEstimate{Chunker: "structure/1", Documents: 7, New: 3, Seconds: 1}, e)
	g, err := api.Reindex(t.Context(), "c", client.ReindexRequest{Chunker: "structure/1"})
	require.NoError(t, err)
	require.Equal(t, []string{"serving", "building"}, []string{g.Generations[0].Role, g.Generations[1].Role})
	require.Nil(t, g.Generations[0].Job)
	require.Equal(t, 7, g.Generations[1].Job.Estimate.Documents)
	for _, action := range []string{"pause", "resume", "cancel", "rollback", "drop"} {
		_, err = api.ChangeReindex(t.Context(), "c", action, nil)
		require.NoError(t, err)
	}
	_, err = api.ChangeReindex(t.Context(), "c", "resume", &half)
	require.NoError(t, err)
	require.Equal(t, []string{
		"estimate acme c structure/1", "start acme c structure/1 0.02", "pause acme c", "resume acme c -1",
		"cancel acme c", "rollback acme c", "drop acme c", "resume acme c 0.5",
	}, d.fake.reindexes.calls)

	var problem *client.Problem
	_, err = api.ChangeReindex(t.Context(), "c", "explode", nil)
	require.ErrorAs(t, err, &problem)
	require.Equal(t, 404, problem.Status)
	_, err = api.ChangeReindex(t.Context(), "c", "drop", &half)
	require.ErrorAs(t, err, &problem)
	require.Equal(t, 400, problem.Status)
	d.fake.reindexes.err = fmt.Errorf("%w: the reindex is paused", ingest.ErrBusy)
	_, err = api.ChangeReindex(t.Context(), "c", "pause", nil)
	require.ErrorAs(t, err, &problem)
	require.Equal(t, 409, problem.Status)
	require.Contains(t, problem.Detail, "paused")
	_, err = d.as("writer").Generations(t.Context(), "c")
	require.ErrorAs(t, err, &problem)
	require.Equal(t, 403, problem.Status)
}

// A job is watched until it is done; a daemon that drains ends the stream.
func TestReindexEvents(t *testing.T) {
	d := start(t)
	d.fake.reindexes.looks = 3
	var built []int
	require.NoError(t, d.as("root").WatchReindex(t.Context(), "c", func(g client.Generations) error {
		if g.Progress != nil {
			built = append(built, g.Progress.Documents)
			require.Equal(t, 60.0, g.Progress.Left)
		}
		return nil
	}))
	require.Equal(t, []int{6, 7}, built, "the first look only asks whether there is such a collection")
	a := d.send("GET", "/v1/collections/c/reindex/events", "", "Authorization", bearer("root"))
	require.Equal(t, "text/event-stream", a.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(a.body, "data: {") && strings.HasSuffix(a.body, "}\n\n"), a.body)

	d.fake.reindexes.looks = 1 << 30
	stopped := errors.New("enough")
	err := d.as("root").WatchReindex(t.Context(), "c", func(client.Generations) error { return stopped })
	require.ErrorIs(t, err, stopped)
	err = d.as("root").WatchReindex(t.Context(), "c", func(client.Generations) error { go d.stop(); return nil })
	require.NoError(t, err)
}

// A stream in which nothing happens says so every thirty looks, and after an
// event counts anew.
func TestReindexEventsHaveAHeartbeat(t *testing.T) {
	d := start(t)
	e := &events{q: &request{s: d.Server, who: identity.Identity{Principal: filter.Principal{Tenant: "acme"}}}, collection: "c"}
	said := func() string {
		require.NoError(t, e.next())
		text := string(e.pending)
		e.pending = nil
		return text
	}
	require.Contains(t, said(), "data: {")
	for range 3 {
		for range heartbeat - 1 {
			require.Empty(t, said())
		}
		require.Equal(t, ": nothing new\n\n", said())
	}
	require.Empty(t, said())
	d.fake.reindexes.looks = 5
	require.Contains(t, said(), "data: {")
	d.fake.reindexes.looks = 5
	for range heartbeat - 1 {
		require.Empty(t, said())
		d.fake.reindexes.looks = 5
	}
	require.NotEmpty(t, said())
}

func TestQuerySet(t *testing.T) {
	d := start(t)
	set := client.QuerySet{Queries: []client.JudgedQuery{{Query: "ships?", Relevant: []string{"k"}, Principal: client.Principal{Subject: "ann", Groups: []string{"crew"}}}}}
	require.NoError(t, d.as("root").SetQueries(t.Context(), "c", set))
	require.Equal(t, filter.Principal{Tenant: "acme", Subject: "ann", Groups: []string{"crew"}, Attributes: filter.Attributes{}}, d.fake.reindexes.queries[0].Principal)
	got, err := d.as("root").Queries(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, set, got)

	for _, body := range []string{`{}`, `{"queries":null}`} {
		a := d.send("PUT", "/v1/collections/c/queries", body, "Authorization", bearer("root"))
		require.Contains(t, requireProblem(t, 400, a), "queries")
	}
	require.Len(t, d.fake.reindexes.queries, 1, "what has no list removes nothing")
	require.NoError(t, d.as("root").SetQueries(t.Context(), "c", client.QuerySet{Queries: []client.JudgedQuery{}}))
	require.Empty(t, d.fake.reindexes.queries)
}
