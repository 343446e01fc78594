package ingest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/store"
)

// daemons are two that share a store, each with a device of its own. Neither
// gives a sign of life, or looks for one, of its own accord.
func daemons(t *testing.T, documents int) (a, b *reindexFixture) {
	t.Helper()
	a = newReindexFixture(t, documents)
	other := *a.fixture
	other.embedder = &recorder{digest: a.embedder.digest}
	other.Writer = NewWriter(other.store, other.embedder, other.awaiter)
	b = &reindexFixture{fixture: &other, searches: a.searches}
	for _, f := range []*reindexFixture{a, b} {
		f.share()
	}
	t.Cleanup(func() { b.Reindexer.Close() })
	return a, b
}

// share opens the reindexer as one of several.
func (f *reindexFixture) share() {
	f.t.Helper()
	if f.Reindexer != nil {
		f.Reindexer.Close()
	}
	byHand := func(r *Reindexer) { r.beatEvery = time.Hour }
	var err error
	f.Reindexer, err = NewReindexer(f.t.Context(), f.Writer, f.searches, slog.New(slog.DiscardHandler), Shared(time.Minute), byHand)
	require.NoError(f.t, err)
}

// running is the run here.
func (f *reindexFixture) running() *run {
	f.t.Helper()
	n := f.under()[f.fixture.id]
	require.NotNil(f.t, n)
	return n
}

// A job is run by one daemon. Another one takes it over when the first gives no
// sign of life for a lease, and what the first still does is in vain and harmless.
func TestAJobIsRunByOneDaemon(t *testing.T) {
	a, b := daemons(t, 10)
	a.embedder.block()
	b.embedder.block()
	a.beginBlocked("fixed/1")
	mine := a.running()
	now := time.Now()
	b.share()
	require.Empty(t, b.under(), "it is run elsewhere")
	require.Eventually(t, func() bool { return mine.now().Of == 10 }, time.Minute, time.Millisecond)
	require.NoError(t, a.beat(t.Context()))
	s, err := b.Status(t.Context(), tenant, library)
	require.NoError(t, err)
	require.Equal(t, 10, s.Progress.Of, "the progress is that of the daemon that runs it")

	require.NoError(t, b.survey(t.Context(), now.Add(lease)))
	require.Empty(t, b.under(), "there was a sign of life")
	require.NoError(t, b.survey(t.Context(), now.Add(2*lease-1)))
	require.Empty(t, b.under())
	require.NoError(t, b.survey(t.Context(), now.Add(2*lease)))
	require.NotNil(t, b.running())

	a.embedder.unblock()
	<-mine.done
	job, role := a.job()
	require.Equal(t, [2]any{Running, store.Building}, [2]any{job.State, role}, "the stalled one neither switched nor failed it")
	b.embedder.unblock()
	job, _ = b.job()
	require.Equal(t, Switched, job.State, job.Reason)
	b.requireWhole(10)
}

// A job that cannot be read keeps neither the daemon from starting nor the jobs
// of other collections from being taken over.
func TestAnUnreadableJobHoldsNothingUp(t *testing.T) {
	a, b := daemons(t, 10)
	for _, name := range []string{"a", "z"} { // before and after the library
		id := a.create(name, store.Settings{Analyzer: "english"})
		_, err := a.fixture.store.SetGenerations(t.Context(), id, func(live []store.Generation) ([]store.Generation, error) {
			return append(live, store.Generation{Chunker: "fixed/1", Role: store.Building, Job: []byte(`"of another version"`)}), nil
		})
		require.NoError(t, err)
	}
	a.embedder.block()
	a.beginBlocked("fixed/1")
	mine := a.running()
	b.share() // does not fail
	require.NoError(t, b.survey(t.Context(), time.Now().Add(2*lease)))
	require.NotNil(t, b.running())
	a.embedder.unblock()
	<-mine.done
	job, _ := b.job()
	require.Equal(t, Switched, job.State, job.Reason)
}

// A daemon that learns by its beat that the job is not its own any more stops.
func TestABeatEndsARunThatWasTakenOver(t *testing.T) {
	a, b := daemons(t, 10)
	a.embedder.taken()
	a.embedder.block()
	a.beginBlocked("fixed/1")
	mine := a.running()
	require.NoError(t, b.survey(t.Context(), time.Now()))
	require.NoError(t, b.survey(t.Context(), time.Now().Add(2*lease)))
	require.NoError(t, a.beat(t.Context()))
	<-mine.done
	require.Empty(t, a.embedder.taken())
	job, _ := b.job()
	require.Equal(t, Switched, job.State, job.Reason)
}

// A pause on one daemon ends the run on another at its next document.
func TestAPauseReachesTheDaemonThatRuns(t *testing.T) {
	a, b := daemons(t, 10)
	a.embedder.block()
	a.beginBlocked("fixed/1")
	mine := a.running()
	_, err := b.Pause(t.Context(), tenant, library)
	require.NoError(t, err)
	a.embedder.unblock()
	<-mine.done
	c, err := a.fixture.store.Collection(t.Context(), tenant, library)
	require.NoError(t, err)
	built := 0
	for _, err := range a.fixture.store.Scan(t.Context(), c.Live()[1].ID, 0) {
		require.NoError(t, err)
		built++
	}
	require.LessOrEqual(t, built, buildsAtOnce, "those that were under way")
	job, _ := a.job()
	require.Equal(t, Paused, job.State)
	_, err = b.Resume(t.Context(), tenant, library, -1)
	require.NoError(t, err)
	require.Empty(t, a.under(), "who resumes it runs it")
	job, _ = b.job()
	require.Equal(t, Switched, job.State, job.Reason)
	b.requireWhole(10)
}

// What a daemon built for a job that another one cancelled says nothing of the next job.
func TestACancelledRunLeavesTheNextJobAlone(t *testing.T) {
	a, b := daemons(t, 10)
	a.embedder.block()
	a.beginBlocked("fixed/1")
	mine := a.running()
	_, err := b.Cancel(t.Context(), tenant, library)
	require.NoError(t, err)
	b.embedder.block()
	b.beginBlocked("structure/1")
	a.embedder.unblock()
	<-mine.done
	job, role := a.job()
	require.Equal(t, [2]any{Running, store.Building}, [2]any{job.State, role})
	require.Equal(t, 1, job.Attempt)
	b.embedder.unblock()
	job, _ = b.job()
	require.Equal(t, Switched, job.State, job.Reason)
	require.Equal(t, "structure/1", b.requireWhole(10).Serving().Chunker)
}

// What another daemon's search may still read is not removed, by however many
// turns it ceased to serve.
func TestWhatIsReadElsewhereIsNotDropped(t *testing.T) {
	a, b := daemons(t, 3)
	a.begin("fixed/1")
	job, _ := a.job()
	require.Equal(t, Switched, job.State, job.Reason)
	_, err := b.Drop(t.Context(), tenant, library)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, "try again in 1m10s")
	for range 2 {
		_, err = b.Rollback(t.Context(), tenant, library)
		require.NoError(t, err)
	}
	b.now = func() time.Time { return job.Ended.Add(b.readable) }
	_, err = b.Drop(t.Context(), tenant, library)
	require.ErrorIs(t, err, ErrBusy, "it served again in between")
	b.now = func() time.Time { return time.Now().Add(b.readable) }
	_, err = b.Drop(t.Context(), tenant, library)
	require.NoError(t, err)
	require.Len(t, b.requireWhole(3).Live(), 1)
}
