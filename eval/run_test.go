package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/bench/figures"
	"sluice/client"
	"sluice/needs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// gate runs the gate on grounded-access against a fake.
func gate(t *testing.T, f *fakeBackend, change func(*Options)) (Report, error) {
	t.Helper()
	o := Options{Dataset: groundedDir, Split: "test", Strategies: []string{"dense"}, Ingest: true, Connect: f.connect, Command: "sluice eval run"}
	if change != nil {
		change(&o)
	}
	report, err := Run(context.Background(), o)
	require.True(t, f.closed, "the backend is closed")
	return report, err
}

func TestAPerfectServicePasses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report")
	steps := map[string][2]int{}
	report, err := gate(t, newFake(nil), func(o *Options) {
		o.Strategies = []string{"sparse", "dense"}
		o.Out = out
		o.Progress = func(stage string, done, total int) { steps[stage] = [2]int{done, total} }
	})
	require.NoError(t, err)
	require.Equal(t, Passed, report.Outcome)
	require.Equal(t, 0, report.Outcome.ExitCode())
	require.Equal(t, 70, report.Answerable)
	for _, s := range report.Strategies {
		for name, e := range s.Metrics {
			require.InDelta(t, 1, e.Low, 1e-12, name)
		}
	}
	require.Equal(t, map[string][2]int{"ingest": {36, 36}, "listings": {5, 5}, "search": {188, 188}}, steps)
	requireFigures(t, report.Figures())
	requireOutputs(t, out)
}

func requireFigures(t *testing.T, figures map[string]float64) {
	t.Helper()
	for name, want := range map[string]float64{
		"leaks": 0, "scope_failures": 0, "degraded": 0, "cases": 94, "answerable": 70,
		"dense.ndcg@10": 1, "dense.ndcg@10.low": 1, "dense.ndcg@10.high": 1,
		"sparse.mrr@10": 1, "sparse.recall@5": 1, "sparse.recall@10": 1,
	} {
		got, ok := figures[name]
		require.True(t, ok, name)
		require.InDelta(t, want, got, 1e-12, name)
	}
	require.Contains(t, figures, "dense.p50_ms")
	require.Contains(t, figures, "dense.p95_ms")
}

func requireOutputs(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	require.NoError(t, err)
	var run map[string]any
	require.NoError(t, json.Unmarshal(data, &run))
	require.Equal(t, "passed", run["outcome"])
	require.Equal(t, "fake", run["model"])
	require.Equal(t, map[string]any{"dense": []any{"plan-dense"}, "sparse": []any{"plan-sparse"}}, run["plans"])
	require.Len(t, run["digest"], 64)
	data, err = os.ReadFile(filepath.Join(dir, "cases.jsonl"))
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(data))
	n := 0
	for lines.Scan() {
		var a Answer
		require.NoError(t, json.Unmarshal(lines.Bytes(), &a))
		require.NotEmpty(t, a.Case)
		n++
	}
	require.Equal(t, 188, n)
	require.FileExists(t, filepath.Join(dir, "report.md"))
}

// forbidden is a document that no principal may see.
var forbidden = client.SearchResult{Document: "security-key-ceremony", Version: 1}

func TestALeakInASearch(t *testing.T) {
	for name, result := range map[string]client.SearchResult{
		"a document nobody may see":      forbidden,
		"a document of the other tenant": {Document: "it-faq", Version: 1},
		"one without a version":          {Document: "security-key-ceremony"},
		"a document nobody wrote":        {Document: "x", Version: 1},
		"a superseded version":           {Document: "sales-pricing-guide", Version: 1},
	} {
		f := newFake(nil)
		f.onSearch = func(p Principal, r *client.SearchResponse) {
			if p.Name == "bob-support" {
				r.Results = append(r.Results, result)
			}
		}
		report, err := gate(t, f, nil)
		require.NoError(t, err, name)
		require.Equal(t, Leaked, report.Outcome, name)
		require.Equal(t, 2, report.Outcome.ExitCode())
		require.Equal(t, "bob-support", report.Findings[0].Principal)
	}
}

func TestALeakInACount(t *testing.T) {
	f := newFake(nil)
	f.onSearch = func(_ Principal, r *client.SearchResponse) { r.Counts.Visible++ }
	report, err := gate(t, f, nil)
	require.NoError(t, err)
	require.Equal(t, Leaked, report.Outcome)
	f = newFake(nil)
	f.onSearch = func(_ Principal, r *client.SearchResponse) { r.Counts.Visible-- }
	_, err = gate(t, f, nil)
	require.ErrorIs(t, err, ErrDisagreement)
}

func TestALeakInAListingStopsTheRun(t *testing.T) {
	f := newFake(nil)
	f.onList = func(p Principal, listed []client.DocumentInfo) []client.DocumentInfo {
		if p.Name != "dave-contractor" {
			return listed
		}
		return append(listed, client.DocumentInfo{Key: "hr-compensation-bands", Version: 1})
	}
	f.onSearch = func(Principal, *client.SearchResponse) { t.Error("searched after a leak") }
	report, err := gate(t, f, nil)
	require.NoError(t, err)
	require.Equal(t, 2, report.Outcome.ExitCode())
	require.Equal(t, []Finding{{
		Kind: Leak, Principal: "dave-contractor", Document: "hr-compensation-bands", Version: 1,
		Detail: "listed, though the labels do not make it visible",
	}}, report.Findings)
	require.Contains(t, report.Markdown(), "stopped at the listings")
	require.Equal(t, 1.0, report.Figures()["leaks"])
}

func TestAShortListingStopsTheRun(t *testing.T) {
	f := newFake(nil)
	f.onList = func(p Principal, listed []client.DocumentInfo) []client.DocumentInfo {
		return slices.DeleteFunc(listed, func(d client.DocumentInfo) bool { return d.Key == "hr-travel-policy" })
	}
	f.onSearch = func(Principal, *client.SearchResponse) { t.Error("searched after a disagreement") }
	report, err := gate(t, f, nil)
	require.ErrorIs(t, err, ErrDisagreement)
	require.ErrorContains(t, err, "disagreement: alice-engineer (listing): hr-travel-policy version 1")
	require.Equal(t, 1, report.Outcome.ExitCode())
}

func TestCompareListing(t *testing.T) {
	labels := map[string]uint32{"a": 1, "b": 2}
	kinds := func(listed ...edition) []Kind {
		var kinds []Kind
		for _, f := range compareListing("p", listed, labels) {
			kinds = append(kinds, f.Kind)
		}
		return kinds
	}
	require.Empty(t, kinds(edition{"a", 1}, edition{"b", 2}))
	require.Equal(t, []Kind{Leak}, kinds(edition{"a", 1}, edition{"b", 2}, edition{"c", 1}))
	require.Equal(t, []Kind{Leak}, kinds(edition{"a", 1}, edition{"b", 1}, edition{"b", 2}), "a superseded version beside the current")
	require.Equal(t, []Kind{Disagreement}, kinds(edition{"a", 1}, edition{"b", 1}), "another version")
	require.Equal(t, []Kind{Disagreement, Disagreement}, kinds())
	require.Equal(t, []Kind{Leak, Disagreement}, kinds(edition{"a", 1}, edition{"c", 1}))
}

func TestAScopeFailure(t *testing.T) {
	for name, misbehave := range map[string]func(Principal, *client.SearchResponse){
		"another region": func(p Principal, r *client.SearchResponse) {
			if p.region() == "US" && p.Tenant == "northstar" {
				r.Results = append(r.Results, client.SearchResult{Document: "hr-public-holidays-eu", Version: 1})
			}
		},
		"not valid yet": func(p Principal, r *client.SearchResponse) {
			if p.Name == "alice-engineer" {
				r.Results = append(r.Results, client.SearchResult{Document: "hr-wellness-benefit-2099", Version: 1})
			}
		},
		"a count": func(_ Principal, r *client.SearchResponse) { r.Counts.OutOfScope++ },
	} {
		f := newFake(nil)
		f.onSearch = misbehave
		report, err := gate(t, f, nil)
		require.NoError(t, err, name)
		require.Equal(t, OutOfScope, report.Outcome, name)
		require.Equal(t, 3, report.Outcome.ExitCode())
	}
}

func TestADegradedResponse(t *testing.T) {
	for name, misbehave := range map[string]func(Principal, *client.SearchResponse){
		"a stage left out": func(_ Principal, r *client.SearchResponse) { r.Degraded = []string{"dense_unavailable"} },
		"another strategy": func(_ Principal, r *client.SearchResponse) { r.Strategy = "sparse" },
	} {
		f := newFake(nil)
		f.onSearch = misbehave
		report, err := gate(t, f, nil)
		require.NoError(t, err, name)
		require.Equal(t, SomeDegraded, report.Outcome, name)
		require.Equal(t, 4, report.Outcome.ExitCode())
	}
}

func TestChunkersThatAreMixed(t *testing.T) {
	f := newFake(nil)
	f.onList = func(_ Principal, listing []client.DocumentInfo) []client.DocumentInfo {
		for i := range listing {
			if listing[i].Key == "hr-volunteer-policy" {
				listing[i].Chunker = "fixed/1"
			}
		}
		return listing
	}
	report, err := gate(t, f, nil)
	require.NoError(t, err)
	require.Equal(t, MixedUp, report.Outcome)
	require.Equal(t, 5, report.Outcome.ExitCode())
	require.Empty(t, report.Strategies, "figures of a mixture would be of no chunker")
	require.Empty(t, mixed("p", []client.DocumentInfo{{Format: "text", Chunker: "a"}, {Format: "markdown", Chunker: "b"}}))
}

func TestTheGravestFindingDecides(t *testing.T) {
	finding := func(kinds ...Kind) (findings []Finding) {
		for _, kind := range kinds {
			findings = append(findings, Finding{Kind: kind})
		}
		return findings
	}
	require.Equal(t, Passed, outcomeOf(nil))
	require.Equal(t, Leaked, outcomeOf(finding(Degraded, ScopeFailure, Disagreement, Leak)))
	require.Equal(t, Failed, outcomeOf(finding(Degraded, ScopeFailure, Disagreement)))
	require.Equal(t, OutOfScope, outcomeOf(finding(Degraded, Mixed, ScopeFailure)))
	require.Equal(t, MixedUp, outcomeOf(finding(Degraded, Mixed)))
	require.Equal(t, Leaked, outcomeOf(finding(Disagreement, ProbeFailure)))
	require.Equal(t, 1, Outcome(0).ExitCode(), "an outcome that nobody set is a failure")
}

func TestRanksFollowTheResults(t *testing.T) {
	f := newFake(nil)
	f.onSearch = func(p Principal, r *client.SearchResponse) { // one result above the evidence
		var filler client.SearchResult
		switch p.Tenant {
		case "northstar":
			filler = client.SearchResult{Document: "hr-volunteer-policy", Version: 1}
		default:
			filler = client.SearchResult{Document: "it-faq", Version: 1}
		}
		r.Results = slices.Insert(r.Results, 0, filler)
	}
	report, err := gate(t, f, nil)
	require.NoError(t, err)
	require.InDelta(t, 0.5, report.Strategies[0].Metrics["mrr@10"].Mean, 1e-12)
	require.InDelta(t, 1, report.Strategies[0].Metrics["recall@5"].Mean, 1e-12)
}

func TestRunBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		damage func(*fakeBackend)
	}{
		"a write that fails": {"no space", func(f *fakeBackend) {
			f.onWrite = func(r *client.WriteResult) { r.Error = &client.Problem{Title: "no space"} }
		}},
		"a collection that was not empty": {"ingest into an empty collection", func(f *fakeBackend) {
			f.onWrite = func(r *client.WriteResult) { r.Version++ }
		}},
		"a result that is lost": {"documents have", func(f *fakeBackend) {
			f.onWrite = func(r *client.WriteResult) {
				if r.Key == "hr-travel-policy" {
					r.Key = ""
				}
			}
		}},
		"evidence at another version": {"is at version 9", func(f *fakeBackend) { f.onDocument = func(d *client.DocumentInfo) { d.Version = 9 } }},
		"a text without the quote":    {"does not occur", func(f *fakeBackend) { f.onDocument = func(d *client.DocumentInfo) { d.Text = "" } }},
		"a result with another's text": {"does not have the text", func(f *fakeBackend) {
			f.onSearch = func(_ Principal, r *client.SearchResponse) {
				if len(r.Results) > 0 {
					r.Results[0].Text = "x"
				}
			}
		}},
		"a range out of bounds": {"does not have the text", func(f *fakeBackend) {
			f.onSearch = func(_ Principal, r *client.SearchResponse) {
				if len(r.Results) > 0 {
					r.Results[0].End = 1 << 30
				}
			}
		}},
	} {
		f := newFake(nil)
		c.damage(f)
		path := filepath.Join(t.TempDir(), "out")
		report, err := gate(t, f, func(o *Options) { o.Out = path })
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, 1, report.Outcome.ExitCode(), name)
		require.NoDirExists(t, path, "a run that broke off has no report")
	}
}

func TestAnEndlessListingIsAnError(t *testing.T) {
	f := newFake(nil)
	f.pages = 0
	_, err := gate(t, f, nil)
	require.ErrorContains(t, err, "no end")
}

func TestOptionsAreChecked(t *testing.T) {
	unreachable := func(context.Context, *Dataset) (Backend, error) { return nil, errors.New("unreachable") }
	for want, o := range map[string]Options{
		"holds no known data set": {Dataset: "testdata"},
		`no split "x"`:            {Dataset: groundedDir, Split: "x"},
		"name at least one":       {Dataset: groundedDir},
		"and each once":           {Dataset: groundedDir, Strategies: []string{"dense", "sparse", "dense"}},
		"unreachable":             {Dataset: groundedDir, Strategies: []string{"dense"}, Connect: unreachable},
	} {
		report, err := Run(context.Background(), o)
		require.ErrorContains(t, err, want)
		require.Equal(t, Failed, report.Outcome)
	}
}

// A document that only the case's own label puts out of scope.
func TestACaseCanPutADocumentOutOfScope(t *testing.T) {
	now := time.Now()
	tr := trial{Case: Case{OutOfScope: []string{"a"}}, visible: map[string]uint32{"a": 1, "b": 1}}
	require.False(t, tr.inScope("a", now))
	require.True(t, tr.inScope("b", now))
}

func TestWholeDocumentsAreRankedOnce(t *testing.T) {
	tr := trial{Case: Case{Exclude: []string{"self"}}, matching: WholeDocument, evidence: []located{{Evidence: Evidence{Documents: []string{"c", "d"}, Version: 1}}}}
	var results []client.SearchResult
	for _, key := range []string{"self", "a", "a", "self", "b", "a", "d", "c"} {
		results = append(results, client.SearchResult{Document: key, Version: 1})
	}
	require.Equal(t, []int{3}, tr.ranks(tr.ranking(results)))
}

func TestMetByNeedsASharedByte(t *testing.T) {
	item := located{Evidence{Documents: []string{"a"}, Version: 2, Quote: "q"}, 10, 20}
	for _, c := range []struct {
		result client.SearchResult
		want   bool
	}{
		{client.SearchResult{Document: "a", Version: 2, Start: 19, End: 30}, true},
		{client.SearchResult{Document: "a", Version: 2, Start: 0, End: 11}, true},
		{client.SearchResult{Document: "a", Version: 2, Start: 20, End: 30}, false},
		{client.SearchResult{Document: "a", Version: 2, Start: 0, End: 10}, false},
		{client.SearchResult{Document: "a", Version: 1, Start: 0, End: 30}, false},
		{client.SearchResult{Document: "b", Version: 2, Start: 0, End: 30}, false},
	} {
		require.Equal(t, c.want, item.metBy(c.result), "%+v", c.result)
	}
}

// The other data sets against a perfect service: their labels hold together.
func TestAPerfectServiceOnTheSharedSets(t *testing.T) {
	for name, split := range map[string]string{"rag-multi-corpus": "test", "kubernetes-keps": ""} {
		t.Run(name, func(t *testing.T) {
			dir := needs.Data(t, name)
			f := newFake(nil)
			f.pages = 1000
			report, err := gate(t, f, func(o *Options) { o.Dataset, o.Split = dir, split })
			require.NoError(t, err)
			require.Equal(t, Passed, report.Outcome)
			require.InDelta(t, 1, report.Strategies[0].Metrics["ndcg@10"].Mean, 1e-12)
		})
	}
}

func TestMarkdownGolden(t *testing.T) {
	report := Report{
		Outcome: OutOfScope, Dataset: "grounded-access", Digest: "d1", Split: "test", Notes: []string{"a note"},
		Documents: 36, Cases: 3, Answerable: 2, Depth: 10, Command: "sluice eval run x", Commit: "c1", Model: "m1",
		Plans:       map[string][]string{"dense": {"p1"}, "sparse": {"p2", "p3"}},
		Environment: figures.Environment{CPU: "a CPU", GPU: "none", Kernels: "ref", Go: "go1.26", OS: "linux/amd64", Cores: 2},
		Date:        time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		Findings: []Finding{
			{ScopeFailure, "alice", "c-1", "dense", "old-policy", 1, "found, though it is out of scope"},
			{Kind: Degraded, Principal: "bob", Case: "c-2", Strategy: "sparse", Detail: "dense_unavailable"},
		},
	}
	cases := []Case{{ID: "c-1", Tags: []string{"numbers", "policy"}}, {ID: "c-2", Tags: []string{"policy"}}, {ID: "c-3", Tags: []string{"policy"}}}
	var answers []Answer
	for strategy, ranks := range map[string][][]int{"sparse": {{1}, {2, 4}, nil}, "dense": {{3}, {0, 1}, nil}} {
		for i, c := range cases {
			answers = append(answers, Answer{Case: c.ID, Strategy: strategy, EvidenceRanks: ranks[i], LatencyMS: float64(i + len(strategy))})
		}
	}
	report.Strategies = summarize([]string{"sparse", "dense"}, metricsOf(nil), cases, answers)
	golden(t, "testdata/golden/report.md", report.Markdown())
	figures, err := json.MarshalIndent(report.Figures(), "", "  ")
	require.NoError(t, err)
	golden(t, "testdata/golden/figures.json", string(figures)+"\n")
	report.Strategies = nil
	golden(t, "testdata/golden/stopped.md", report.Markdown())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
