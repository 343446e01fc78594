package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/document"
	"sluice/eval/fidelity"
	"sluice/statistics"
)

func parsePlain(_ context.Context, format string, raw []byte) (document.Document, error) {
	return document.Parse(format, raw)
}

// fakeRecords writes a run and answers of the fake service, which finds all.
func fakeRecords(t *testing.T) (run, answers string) {
	t.Helper()
	run = t.TempDir()
	_, err := Run(t.Context(), Options{Dataset: "testdata/grounded-access", Split: "test", Strategies: []string{"hybrid"}, Ingest: true, Connect: newFake(nil).connect, Out: run})
	require.NoError(t, err)
	_, answers = runAnswers(t, nil, nil)
	return run, answers
}

func TestAxes(t *testing.T) {
	run, answers := fakeRecords(t)
	axes, err := MeasureAxes(t.Context(), AxesOptions{
		Twins: []string{"fidelity/testdata/twins"}, Parse: parsePlain, Dataset: "testdata/grounded-access", Run: run, Answers: answers, K: 5,
	})
	require.NoError(t, err)
	require.Len(t, axes.Parse, 2)
	require.Equal(t, 1.0, axes.Parse[0].Whole.Mean, "HTML and Markdown say the same")
	require.Positive(t, axes.Index.PagesPerS)
	require.Equal(t, 70, axes.Grounded.Counts.Answerable)
	require.Equal(t, 1.0, axes.Grounded.Attributed.Mean)
	require.Greater(t, axes.Grounded.Complete.Mean, .8)
	require.NotEmpty(t, axes.Associations)
	for _, m := range axes.Retrieval {
		if m.Tag == allCases {
			require.Equal(t, 70, m.Cases)
			require.Equal(t, 1.0, m.Hit.Mean)
			require.Less(t, m.Hit.Low, 1.0, "Wilson's interval has a width")
		}
	}
	for _, heading := range []string{"## Parsing", "## Indexing", "## Retrieval", "## Groundedness", "## How the stages"} {
		require.Contains(t, axes.Markdown(), heading)
	}
	require.Equal(t, 1.0, axes.Figures()["hybrid.all.hit@5"])
	require.NotContains(t, axes.Figures(), "parse.html.captions", "no file has captions")
	dir := t.TempDir()
	require.NoError(t, axes.write(dir))
	raw, err := os.ReadFile(filepath.Join(dir, "axes.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(raw))
}

func TestAxesRefuse(t *testing.T) {
	run, answers := fakeRecords(t)
	for want, o := range map[string]AxesOptions{
		"nothing to report on":     {K: 5},
		"at least 1":               {Run: run, Dataset: "testdata/grounded-access"},
		"nor DoclingDocument":      {K: 5, Twins: []string{"scripted"}},
		"eval run --out":           {K: 5, Run: t.TempDir(), Dataset: "testdata/grounded-access"},
		"eval answers --out":       {K: 5, Answers: t.TempDir(), Dataset: "testdata/grounded-access"},
		run + " is of another":     {K: 5, Run: run, Dataset: ownData(t)},
		answers + " is of another": {K: 5, Answers: answers, Dataset: ownData(t)},
	} {
		_, err := MeasureAxes(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}

// ownData is another data set: one document, one principal, one case.
func ownData(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, line := range map[string]string{
		"documents.jsonl":  `{"tenant":"a","key":"k","format":"text","text":"one two"}`,
		"principals.jsonl": `{"name":"p","tenant":"a","visible":["k"]}`,
		"cases.jsonl":      `{"id":"c","principal":"p","query":"q","evidence":[{"document":"k","version":1,"quote":"one"}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(line+"\n"), 0o644))
	}
	_, err := Load(dir)
	require.NoError(t, err)
	return dir
}

// A source that is refused scores 0 and is counted.
func TestParseAxisOfRefused(t *testing.T) {
	axes, err := MeasureAxes(t.Context(), AxesOptions{K: 5, Twins: []string{"fidelity/testdata/twins"},
		Parse: func(context.Context, string, []byte) (document.Document, error) {
			return document.Document{}, document.ErrMalformed
		}})
	require.NoError(t, err)
	require.Equal(t, 1, axes.Parse[0].Failed)
	require.Zero(t, axes.Parse[0].Whole.Mean)
}

// What was read badly is told by layer, with what was wanted in its place; misses
// join under their own.
func TestAxesBadCases(t *testing.T) {
	dir, misses := t.TempDir(), t.TempDir()
	var d directory
	d.addJSON("c1.json", []Miss{{Case: "c1", Strategy: "dense", Layer: LayerOutcome, Stage: RankedLow}, {Case: "c1", Strategy: "sparse", Layer: LayerIndex, Stage: NotCandidate}})
	require.NoError(t, d.write(misses))
	axes, err := MeasureAxes(t.Context(), AxesOptions{K: 5, Twins: []string{"fidelity/testdata/twins"}, Misses: misses, Out: dir,
		Parse: func(ctx context.Context, format string, raw []byte) (document.Document, error) {
			if format == "html" {
				return document.Parse("markdown", []byte("| other | cells |\n| --- | --- |\n| 1 | 2 |\n"))
			}
			return document.Document{}, document.ErrMalformed
		}})
	require.NoError(t, err)
	f := axes.Figures()
	for _, name := range []string{"bad.element.text", "bad.element.tables", "bad.element.not-read", "bad.index.not-candidate", "bad.outcome.ranking"} {
		require.Equal(t, 1.0, f[name], name)
	}
	require.Contains(t, axes.Markdown(), "| index | not-candidate | 1 | c1, sparse |")
	raw, err := os.ReadFile(filepath.Join(dir, "bad", "b.html.json"))
	require.NoError(t, err)
	require.Contains(t, string(raw), `"read": "other cells 1 2"`)
	for _, foreign := range []string{dir, t.TempDir()} {
		_, err = MeasureAxes(t.Context(), AxesOptions{K: 5, Misses: foreign})
		require.ErrorContains(t, err, "eval failures --out")
	}
}

// A run that missed nothing is told as such.
func TestAxesWithoutMisses(t *testing.T) {
	misses := t.TempDir()
	require.NoError(t, Failures{Items: 3, At: 5}.write(misses))
	axes, err := MeasureAxes(t.Context(), AxesOptions{K: 5, Misses: misses})
	require.NoError(t, err)
	require.Contains(t, axes.Markdown(), "No item of evidence was missed.")
}

// Two cases by hand, k = 2: ranks 1 and 3 of one, nothing of the other.
func TestModality(t *testing.T) {
	m := newModality("s", "t", []Answer{
		{EvidenceRanks: []int{1, 3}, Results: []AnswerResult{{Relevant: true}, {}, {Relevant: true}}},
		{EvidenceRanks: []int{0}, Results: []AnswerResult{{}}},
	}, 2)
	require.Equal(t, statistics.Rate(1, 2), m.Hit)
	require.Equal(t, statistics.Rate(1, 4), m.Precision, "results that are missing are wrong ones")
	require.Equal(t, statistics.Rate(1, 3), m.Recall)
	require.InDelta(t, 1/(1+0.6309297536)/2, m.NDCG.Mean, 1e-9)
	require.Equal(t, 0.5, m.MRR.Mean)
}

// 6,000 bytes are two pages, built in 4 s: half a page a second, so at 3.60 an
// hour .002 a page; 5 GB a page at .10 a month are 6 a year.
func TestIndexAxis(t *testing.T) {
	require.Nil(t, newIndexAxis(Report{}, Prices{}))
	a := newIndexAxis(Report{Build: &Build{Seconds: 4, Text: 6000, Disk: 10e9}}, Prices{Machine: 3.60, Storage: 0.10})
	require.Equal(t, 0.5, a.PagesPerS)
	require.Equal(t, 5e9, a.PageDisk)
	require.InDelta(t, 6.002, a.PageYear, 1e-9)
}

// Fidelity of a file is that of the cases whose evidence it has; stages that go
// together by hand are found to.
func TestStages(t *testing.T) {
	a := Axes{}
	var cases []Case
	x, y := map[string]float64{}, map[string]float64{}
	for i := range leastPairs {
		name := fmt.Sprintf("c%02d", i)
		a.Parsed = append(a.Parsed, Parsed{File: name + ".pdf", Format: "pdf", Scores: fidelity.Scores{Whole: float64(i) / 10, Words: 100 - i}})
		cases = append(cases, Case{ID: name, Evidence: []Evidence{{Documents: []string{"org/md/" + name + ".md"}}}})
		x[name], y[name] = float64(i), float64(-i*i)
	}
	a.Parsed = append(a.Parsed, Parsed{File: "c03.pdf", Format: "pdf"}, Parsed{File: "c04.html", Format: "html"})
	of := a.fidelityOf(cases)
	require.Len(t, of, leastPairs-1, "of two files with one name neither counts")
	require.Equal(t, 0.5, of["c05"])

	a.associate([]stage{{"first", x}, {"second", y}})
	require.Len(t, a.Associations, 2)
	require.Equal(t, "second", a.Associations[0].Strategy)
	require.InDelta(t, -1, a.Associations[0].Kendall.Mean, 1e-12)
	require.InDelta(t, -1, a.Associations[0].Spearman.Mean, 1e-12)
	require.Equal(t, "parse of pdf", a.Associations[1].Strategy)
}
