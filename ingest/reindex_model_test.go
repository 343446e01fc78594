package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/store"
)

// jobModel is where a collection's job and generations should be. Jobs wait for
// the device unless it is open, so that every state can be looked at.
type jobModel struct {
	f        *reindexFixture
	state    State // of the building generation's job; "": there is none
	previous bool
	chunker  string // of the serving generation
	building string
	before   string // of the previous one
}

// Random commands and restarts lead a job through the states of the model, and
// what they may not do they refuse.
func TestJobStates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newReindexFixture(t, 3)
		m := &jobModel{f: f}
		f.embedder.block()
		rt.Repeat(map[string]func(*rapid.T){
			"": m.compare,
			"Start": func(rt *rapid.T) {
				chunker := m.other(rt)
				_, err := f.launch(t.Context(), tenant, library, chunker, Job{Bound: DefaultBound})
				if m.expect(rt, err, m.state == "" && !m.previous) {
					m.state, m.building = Running, chunker
				}
			},
			"Pause":  func(rt *rapid.T) { m.do(rt, f.Pause, m.state == Running, func() { m.state = Paused }) },
			"Cancel": func(rt *rapid.T) { m.do(rt, f.Cancel, m.state != "", func() { m.state = "" }) },
			"Resume": func(rt *rapid.T) {
				resume := func(ctx context.Context, t, c string) (Status, error) { return f.Resume(ctx, t, c, -1) }
				m.do(rt, resume, m.state != "" && m.state != Running, func() { m.state = Running })
			},
			"Rollback": func(rt *rapid.T) {
				m.do(rt, f.Rollback, m.previous, func() { m.chunker, m.before = m.before, m.chunker })
			},
			"Drop":    func(rt *rapid.T) { m.do(rt, f.Drop, m.previous, func() { m.previous = false }) },
			"Restart": func(*rapid.T) { f.open() },
			"Device":  m.device,
		})
		if f.embedder.gate != nil {
			f.embedder.unblock()
		}
		f.Reindexer.Close()
	})
}

// other is a chunker whose chunks need the device: neither the serving
// generation nor the cache has any of them.
func (m *jobModel) other(rt *rapid.T) string {
	_, err := m.f.fixture.store.PruneEmbeddings(m.f.t.Context(), time.Now().Add(time.Hour))
	require.NoError(rt, err)
	if m.chunker == "fixed/1" {
		return "markdown/1"
	}
	return "fixed/1"
}

func (m *jobModel) do(rt *rapid.T, change func(context.Context, string, string) (Status, error), allowed bool, then func()) {
	_, err := change(m.f.t.Context(), tenant, library)
	if m.expect(rt, err, allowed) {
		then()
	}
}

func (m *jobModel) expect(rt *rapid.T, err error, allowed bool) bool {
	require.Equal(rt, allowed, err == nil, "%v", err)
	require.True(rt, allowed || errors.Is(err, ErrBusy), "%v", err)
	return allowed
}

// device lets a running job end, well or badly.
func (m *jobModel) device(rt *rapid.T) {
	if m.state != Running {
		rt.Skip("nothing runs")
	}
	bad := rapid.Bool().Draw(rt, "bad")
	m.f.embedder.fail(bad)
	m.f.embedder.unblock()
	job, role := m.f.job()
	m.f.embedder.fail(false)
	m.f.embedder.block()
	if bad {
		require.Equal(rt, Failed, job.State)
		m.state = Failed
		return
	}
	require.Equal(rt, Switched, job.State, job.Reason)
	require.Equal(rt, store.Serving, role)
	m.state, m.previous, m.before, m.chunker = "", true, m.chunker, m.building
}

func (m *jobModel) compare(rt *rapid.T) {
	s, err := m.f.Status(m.f.t.Context(), tenant, library)
	require.NoError(rt, err)
	roles := map[store.Role]GenerationStatus{}
	for _, g := range s.Generations {
		roles[g.Role] = g
	}
	require.Equal(rt, m.chunker, roles[store.Serving].Chunker)
	require.Equal(rt, m.state, roles[store.Building].Job.State)
	_, previous := roles[store.Previous]
	require.Equal(rt, m.previous, previous)
	m.f.requireWhole(3)
}
