package ingest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/chunk"
	"sluice/filter"
	"sluice/store"
)

// searches is what a reindexer needs of searches, by the store alone: a query
// finds the documents of the generation whose text has it, those of the answers first.
type searches struct {
	*awaiter
	store   store.Store
	answers map[uint32][]string // by generation
}

func (s *searches) Idle(context.Context, uint32) error { return nil }

func (s *searches) Keys(ctx context.Context, tenant, collection string, generation uint32, q Query, k int) ([]string, error) {
	c, err := s.store.Collection(ctx, tenant, collection)
	if err != nil {
		return nil, err
	}
	if generation == 0 {
		generation = c.Serving().ID
	}
	keys := s.answers[generation]
	for r, err := range s.store.Scan(ctx, generation, 0) {
		if err != nil {
			return nil, err
		}
		content, err := s.store.Content(ctx, generation, r.Ordinal, false)
		if err != nil {
			return nil, err
		}
		if strings.Contains(content.Text, q.Text) {
			keys = append(keys, r.Key)
		}
	}
	return keys[:min(k, len(keys))], nil
}

type reindexFixture struct {
	*fixture
	*Reindexer
	searches *searches
}

func newReindexFixture(t testing.TB, documents int) *reindexFixture {
	f := &reindexFixture{fixture: newFixture(t)}
	f.searches = &searches{awaiter: f.awaiter, store: f.fixture.store, answers: map[uint32][]string{}}
	for i := range documents {
		f.write(markdown(fmt.Sprint("k", i), fmt.Sprint("only in ", i), "in all of them"))
	}
	f.open()
	t.Cleanup(func() { f.Reindexer.Close() })
	return f
}

// open starts a reindexer as a new process does.
func (f *reindexFixture) open() {
	f.t.Helper()
	if f.Reindexer != nil {
		f.Reindexer.Close()
	}
	var err error
	f.Reindexer, err = NewReindexer(f.t.Context(), f.Writer, f.searches, slog.New(slog.DiscardHandler))
	require.NoError(f.t, err)
}

// job waits until none runs, and returns that of the newest generation.
func (f *reindexFixture) job() (Job, store.Role) {
	f.t.Helper()
	for {
		f.mu.Lock()
		n := f.runs[f.id]
		f.mu.Unlock()
		if n == nil {
			break
		}
		<-n.done
	}
	s, err := f.Status(f.t.Context(), tenant, library)
	require.NoError(f.t, err)
	newest := s.Generations[0]
	for _, g := range s.Generations {
		if g.ID > newest.ID {
			newest = g
		}
	}
	return newest.Job, newest.Role
}

func (f *reindexFixture) begin(chunker string) Status {
	f.t.Helper()
	s, err := f.Start(f.t.Context(), tenant, library, chunker, DefaultBound)
	require.NoError(f.t, err)
	return s
}

// beginBlocked begins a job without an estimate, whose sample would wait for the device.
func (f *reindexFixture) beginBlocked(chunker string) Status {
	f.t.Helper()
	s, err := f.launch(f.t.Context(), tenant, library, chunker, Job{Bound: DefaultBound})
	require.NoError(f.t, err)
	return s
}

// requireWhole: every live generation but the building one has every document.
func (f *reindexFixture) requireWhole(documents int) store.Collection {
	f.t.Helper()
	c, err := f.fixture.store.Collection(context.Background(), tenant, library)
	require.NoError(f.t, err)
	for _, g := range c.Live() {
		n := 0
		for r, err := range f.fixture.store.Scan(context.Background(), g.ID, 0) {
			require.NoError(f.t, err)
			content, err := f.fixture.store.Content(context.Background(), g.ID, r.Ordinal, true)
			require.NoError(f.t, err)
			for i, piece := range content.Chunks {
				require.Equal(f.t, vectorOf(f.embedder.digest, chunk.EmbedText(content.Text, piece)), content.Vectors[i*4:(i+1)*4])
			}
			if g.Chunker != "" {
				require.Equal(f.t, g.Chunker, r.Chunker)
			}
			n++
		}
		if g.Role != store.Building {
			require.Equal(f.t, documents, n, "%v", g.Role)
		}
	}
	return c
}

func TestReindex(t *testing.T) {
	f := newReindexFixture(t, 20)
	f.embedder.taken()
	estimate, err := f.Estimate(t.Context(), tenant, library, "fixed/1")
	require.NoError(t, err)
	require.Equal(t, [2]int{20, estimate.Chunks}, [2]int{estimate.Documents, estimate.New + estimate.Reused})
	require.Equal(t, estimate.New, 20, "every document is one chunk of its own")
	paid := len(f.embedder.taken())
	require.Equal(t, 20, paid, "the sample")

	f.begin("fixed/1")
	job, role := f.job()
	require.Equal(t, Switched, job.State, job.Reason)
	require.Equal(t, store.Serving, role)
	require.Len(t, job.Gates, 3)
	require.Empty(t, f.embedder.taken(), "nothing is paid for twice")
	c := f.requireWhole(20)
	require.Equal(t, "fixed/1", c.Serving().Chunker)

	out := f.write(markdown("new", "written after the switch"))
	require.Equal(t, c.Serving().ID, out.Collection)
	f.requireWhole(21)
	_, err = f.Rollback(t.Context(), tenant, library)
	require.NoError(t, err)
	require.Equal(t, f.id, f.requireWhole(21).Serving().ID)
	_, err = f.Rollback(t.Context(), tenant, library)
	require.NoError(t, err)
	_, err = f.Start(t.Context(), tenant, library, "structure/1", 0)
	require.ErrorIs(t, err, ErrBusy)
	_, err = f.Drop(t.Context(), tenant, library)
	require.NoError(t, err)
	require.Len(t, f.requireWhole(21).Live(), 1)
}

// The chunker that serves already costs no embedding.
func TestReindexUnchangedEmbedsNothing(t *testing.T) {
	f := newReindexFixture(t, 10)
	f.embedder.taken()
	f.begin("markdown/1")
	job, _ := f.job()
	require.Equal(t, Switched, job.State, job.Reason)
	require.Zero(t, job.Estimate.New)
	require.Empty(t, f.embedder.taken())
	f.requireWhole(10)
}

// Writes while a generation is built go into both; what they race with is not lost.
func TestWritesDuringAReindex(t *testing.T) {
	f := newReindexFixture(t, 40)
	var writers sync.WaitGroup
	f.begin("structure/1")
	for w := range 4 {
		writers.Go(func() {
			for i := w; i < 40; i += 4 {
				key := fmt.Sprint("k", i)
				var err error
				switch i % 3 {
				case 0:
					_, err = f.Write(t.Context(), tenant, library, markdown(key, "changed", fmt.Sprint(i)))
				case 1:
					_, err = f.Delete(t.Context(), tenant, library, key)
				default:
					_, err = f.SetAccess(t.Context(), tenant, library, key, func(filter.Access) (filter.Access, error) { return readableBy("user:c"), nil })
				}
				if err != nil {
					t.Errorf("writing %s: %v", key, err)
				}
			}
		})
	}
	writers.Wait()
	job, _ := f.job()
	require.Equal(t, Switched, job.State, job.Reason)
	c := f.requireWhole(27)
	for r, err := range f.fixture.store.Scan(t.Context(), f.id, 0) {
		require.NoError(t, err)
		its, err := f.fixture.store.Lookup(t.Context(), c.Serving().ID, r.Key)
		require.NoError(t, err)
		require.Equal(t, r.Access, its.Access)
		require.Equal(t, r.Version, its.Version)
	}
}

// A panic fails the job that it is in, and nothing else. Where it was is in the log.
func TestReindexPanics(t *testing.T) {
	f := newReindexFixture(t, 60)
	var log bytes.Buffer
	f.log = slog.New(slog.NewTextHandler(&log, nil))
	f.embedder.mu.Lock()
	f.embedder.failAfter, f.embedder.panics = len(f.embedder.texts)+40, true
	f.embedder.mu.Unlock()
	f.begin("fixed/1")
	job, _ := f.job()
	require.Equal(t, Failed, job.State)
	require.Equal(t, "this is the daemon's fault; its log has more", job.Reason)
	f.Reindexer.Close()
	require.Contains(t, log.String(), errInjected.Error())
	require.Contains(t, log.String(), "goroutine ")
}

// A job stops where the device fails, and goes on without paying again.
func TestReindexResumes(t *testing.T) {
	f := newReindexFixture(t, 60)
	f.embedder.mu.Lock()
	f.embedder.failAfter = len(f.embedder.texts) + 40
	f.embedder.mu.Unlock()
	f.begin("fixed/1")
	job, role := f.job()
	require.Equal(t, Failed, job.State)
	require.Contains(t, job.Reason, errInjected.Error())
	require.Equal(t, store.Building, role, "a failed reindex publishes nothing")
	f.requireWhole(60)

	f.open()
	job, _ = f.job()
	require.Equal(t, Failed, job.State, "until it is resumed")
	f.embedder.mu.Lock()
	f.embedder.failAfter = 0
	f.embedder.mu.Unlock()
	_, err := f.Resume(t.Context(), tenant, library, -1)
	require.NoError(t, err)
	job, _ = f.job()
	require.Equal(t, Switched, job.State, job.Reason)
	seen := map[string]bool{}
	for _, text := range f.embedder.taken() {
		require.False(t, seen[text], "%q was paid for twice", text)
		seen[text] = true
	}
}

func TestPauseAndCancel(t *testing.T) {
	f := newReindexFixture(t, 10)
	f.embedder.block()
	s := f.beginBlocked("fixed/1")
	require.NotNil(t, s.Progress)
	_, err := f.Start(t.Context(), tenant, library, "fixed/1", 0)
	require.ErrorIs(t, err, ErrBusy)
	_, err = f.Pause(t.Context(), tenant, library)
	require.NoError(t, err)
	job, _ := f.job()
	require.Equal(t, Paused, job.State)
	_, err = f.Pause(t.Context(), tenant, library)
	require.ErrorIs(t, err, ErrBusy)
	f.open()
	job, _ = f.job()
	require.Equal(t, Paused, job.State)
	_, err = f.Resume(t.Context(), tenant, library, -1)
	require.NoError(t, err)
	s, err = f.Cancel(t.Context(), tenant, library)
	require.NoError(t, err)
	require.Len(t, s.Generations, 1)
	for _, absent := range []func(context.Context, string, string) (Status, error){f.Cancel, f.Pause, f.Rollback, f.Drop} {
		_, err = absent(t.Context(), tenant, library)
		require.ErrorIs(t, err, ErrBusy)
	}
	f.requireWhole(10)
}

// A running job goes on in the next process.
func TestReindexGoesOnAfterARestart(t *testing.T) {
	f := newReindexFixture(t, 10)
	f.embedder.block()
	f.beginBlocked("fixed/1")
	f.open() // ends the one before where it waits
	f.embedder.unblock()
	job, _ := f.job()
	require.Equal(t, Switched, job.State, job.Reason)
	f.requireWhole(10)
}

func TestRelevanceGate(t *testing.T) {
	f := newReindexFixture(t, 10)
	var queries []Query
	for i := range 10 {
		queries = append(queries, Query{Text: fmt.Sprintf("only in %d", i), Relevant: []string{fmt.Sprint("k", i)}, Principal: filter.Principal{Subject: "a"}})
	}
	require.NoError(t, f.SetQueries(t.Context(), tenant, library, queries))
	f.searches.answers[f.id+1] = []string{"k0"} // the new generation ranks it first, always
	f.begin("fixed/1")
	job, role := f.job()
	require.Equal(t, Refused, job.State)
	require.Equal(t, store.Building, role)
	require.Contains(t, job.Reason, "relevance")
	_, err := f.Resume(t.Context(), tenant, library, 1)
	require.NoError(t, err)
	job, _ = f.job()
	require.Equal(t, Switched, job.State, "within the wider bound")
	require.ErrorIs(t, f.SetQueries(t.Context(), tenant, library, []Query{{Text: "q"}}), store.ErrInvalid)
	got, err := f.Queries(t.Context(), tenant, library)
	require.NoError(t, err)
	require.Len(t, got, 10)
}

// The gates tell a generation that lacks a document, has another version of it,
// other readers, or a part of its text in no chunk.
func TestGates(t *testing.T) {
	f := newReindexFixture(t, 3)
	f.embedder.block()
	f.beginBlocked("fixed/1")
	_, err := f.Pause(t.Context(), tenant, library)
	require.NoError(t, err)
	f.embedder.unblock()
	c := f.requireWhole(3)
	g, _ := c.Generation(store.Building)
	gates, err := f.gates(t.Context(), c, g, 0)
	require.NoError(t, err)
	require.Contains(t, refusal(gates), "structure: 3 of 3 documents differ")

	serving, err := f.fixture.store.Lookup(t.Context(), c.ID, "k0")
	require.NoError(t, err)
	content, b, err := f.rechunked(t.Context(), serving, g)
	require.NoError(t, err)
	b.Chunks[0].End -= 10
	b.Dimensions, b.Vectors = 1, make([]float32, len(b.Chunks))
	_, err = f.fixture.store.Build(t.Context(), c.ID, serving, b)
	require.NoError(t, err)
	gates, err = f.gates(t.Context(), c, g, 0)
	require.NoError(t, err)
	require.Contains(t, refusal(gates), fmt.Sprintf("bytes %d to %d", len(content.Text)-10, len(content.Text)))

	built, err := f.fixture.store.Lookup(t.Context(), g.ID, "k0")
	require.NoError(t, err)
	fault, err := sameAccess(t.Context(), g, serving, &built)
	require.NoError(t, err)
	require.Empty(t, fault)
	built.Access = readableBy("user:somebody else")
	fault, err = sameAccess(t.Context(), g, serving, &built)
	require.NoError(t, err)
	require.NotEmpty(t, fault)
	built.Version++
	fault, err = f.structure(t.Context(), g, serving, &built)
	require.NoError(t, err)
	require.Equal(t, "it is another version", fault)
}

// haunted is a store one generation of which has a document that was never written to it.
type haunted struct {
	store.Store
	generation uint32
	ghost      store.Record
	gone       bool // by the time that it is looked at again
}

func (h *haunted) Scan(ctx context.Context, generation, from uint32) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for record, err := range h.Store.Scan(ctx, generation, from) {
			if !yield(record, err) {
				return
			}
		}
		if generation == h.generation {
			yield(h.ghost, nil)
		}
	}
}

func (h *haunted) Records(ctx context.Context, generation uint32, ordinals []uint32) (map[uint32]store.Record, error) {
	records, err := h.Store.Records(ctx, generation, ordinals)
	if err == nil && generation == h.generation && !h.gone && slices.Contains(ordinals, h.ghost.Ordinal) {
		records[h.ghost.Ordinal] = h.ghost
	}
	return records, err
}

// A document that only the new generation has is one that others may read.
func TestAuthorizationGateRefusesWhatIsExtra(t *testing.T) {
	f := newReindexFixture(t, 3)
	c := f.requireWhole(3)
	ghost := store.Record{Key: "ghost", Ordinal: 1000, Version: 1, Access: readableBy("user:c")}
	f.writer.store = &haunted{Store: f.fixture.store, generation: c.ID + 1, ghost: ghost}
	f.begin("fixed/1")
	job, role := f.job()
	require.Equal(t, Refused, job.State)
	require.Equal(t, store.Building, role)
	require.Contains(t, job.Reason, `authorization: 1 of 4 documents differ, the first: document "ghost"`)

	f.writer.store.(*haunted).gone = true // deleted while it was compared
	_, err := f.Resume(t.Context(), tenant, library, -1)
	require.NoError(t, err)
	job, _ = f.job()
	require.Equal(t, Switched, job.State, job.Reason)
}

func TestReindexRefuses(t *testing.T) {
	f := newReindexFixture(t, 1)
	_, err := f.Start(t.Context(), tenant, library, "nothing/9", 0)
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = f.Start(t.Context(), "other", library, "fixed/1", 0)
	require.ErrorIs(t, err, store.ErrNotFound)
	f.create("own", store.Settings{Analyzer: "english", Own: store.Own{Dense: 2}})
	_, err = f.Start(t.Context(), tenant, "own", "fixed/1", 0)
	require.ErrorIs(t, err, store.ErrInvalid)
}
