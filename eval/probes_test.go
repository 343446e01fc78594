package eval

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

func probed(t *testing.T, f *fakeBackend) Report {
	t.Helper()
	report, err := gate(t, f, func(o *Options) { o.Strategies, o.Probes = []string{"sparse", "dense"}, true })
	require.NoError(t, err)
	require.NotNil(t, report.Probes)
	require.Greater(t, report.Probes.Asked, 500)
	return report
}

func TestProbesOfAPerfectService(t *testing.T) {
	report := probed(t, newFake(nil))
	require.Equal(t, Passed, report.Outcome)
	require.Zero(t, report.Probes.Failures)
	require.Equal(t, []string{"by key", "sparse", "dense"}, []string{report.Probes.Timings[0].Strategy, report.Probes.Timings[1].Strategy, report.Probes.Timings[2].Strategy})
	require.Contains(t, report.Markdown(), "0 answers differ")
}

// Each way in which an answer can tell that there is more than is shown.
func TestProbesFindWhatShowsExistence(t *testing.T) {
	documents := func(f *fakeBackend) (n int) {
		for _, tenant := range f.stored {
			n += len(tenant)
		}
		return n
	}
	for name, misbehave := range map[string]func(f *fakeBackend, r *client.SearchResponse){
		"a score": func(f *fakeBackend, r *client.SearchResponse) {
			for i := range r.Results {
				r.Results[i].Score = 1 / float64(documents(f))
			}
			if len(r.Results) == 0 {
				r.Results = []client.SearchResult{{Document: "hr-volunteer-policy", Version: 1, Score: 1 / float64(documents(f))}}
			}
		},
		"the plan": func(f *fakeBackend, r *client.SearchResponse) {
			if documents(f) > 30 {
				r.Plan = "exhaustive"
			}
		},
		"an explanation": func(f *fakeBackend, r *client.SearchResponse) {
			r.Ranking = &client.Ranking{DenseDepth: documents(f)}
		},
	} {
		f := newFake(nil)
		f.onRequest = func(_ client.SearchRequest, r *client.SearchResponse) { misbehave(f, r) }
		f.onSearch = func(p Principal, r *client.SearchResponse) {
			if p.Tenant != "northstar" {
				r.Results = nil // which may not see what the first of these shows
			}
		}
		report := probed(t, f)
		require.Equal(t, Leaked, report.Outcome, name)
		require.Equal(t, 2, report.Outcome.ExitCode())
		require.Positive(t, report.Probes.Failures, name)
		require.Equal(t, report.Probes.Failures, count(report.Findings, ProbeFailure), name)
		require.Zero(t, count(report.Findings, Leak), "the counts are apart")
		figures := report.Figures()
		require.Zero(t, figures["leaks"])
		require.Equal(t, float64(report.Probes.Failures), figures["probe_failures"])
	}
}

func TestProbesFindAnErrorThatShowsExistence(t *testing.T) {
	f := newFake(nil)
	f.onRefusal = func(s fakeSession, key string, problem *client.Problem) {
		if _, there := s.stored[s.principal.Tenant][key]; there {
			problem.Status = 403
		}
	}
	report := probed(t, f)
	require.Equal(t, Leaked, report.Outcome)
	require.Positive(t, report.Probes.Failures)
	require.Equal(t, "the error differs from where the document does not exist", report.Findings[0].Detail)
}

func TestAProbeThatIsShownTheDocumentIsALeak(t *testing.T) {
	f := newFake(nil)
	titles := map[string]bool{}
	d, err := Load(groundedDir)
	require.NoError(t, err)
	for _, doc := range d.Documents {
		titles[doc.Title] = true
	}
	f.onRequest = func(request client.SearchRequest, r *client.SearchResponse) {
		if titles[request.Query] {
			r.Results = append(r.Results, forbidden)
		}
	}
	report := probed(t, f)
	require.Positive(t, count(report.Findings, Leak))
	require.Zero(t, report.Probes.Failures, "both worlds show it: only the labels tell")
}

// Nothing that a principal may see is probed, and everything else is, in its
// tenant and in others.
func TestWhatIsProbed(t *testing.T) {
	d, err := Load(groundedDir)
	require.NoError(t, err)
	for _, p := range d.Principals {
		asked := map[string]bool{}
		for _, one := range d.probesOf(p, []string{"dense"}) {
			asked[one.tenant+"/"+one.document] = true
		}
		hidden := 0
		for _, tenant := range d.Tenants() {
			for key := range d.current(tenant) {
				_, visible := d.Visible[p.Name][key]
				require.Equal(t, tenant != p.Tenant || !visible, asked[tenant+"/"+key], "%s %s", p.Name, key)
				if tenant != p.Tenant || !visible {
					hidden++
				}
			}
		}
		require.Len(t, asked, hidden)
		less := d.without(p)
		require.Equal(t, d.Tenants(), less.Tenants())
		require.Len(t, less.current(p.Tenant), len(d.Visible[p.Name]))
	}
}
