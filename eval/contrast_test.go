package eval

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is a run of one strategy a column, with the rank of one item a case.
func recorded(digest string, ranks map[string][]int) Recorded {
	run := Recorded{Report: Report{Digest: digest}}
	for _, strategy := range []string{"sparse", "dense", "hybrid"} {
		if ranks[strategy] == nil {
			continue
		}
		run.Strategies = append(run.Strategies, Summary{Strategy: strategy})
		for i, rank := range ranks[strategy] {
			a := Answer{Case: string(rune('a' + i)), Strategy: strategy, EvidenceRanks: []int{rank}, LatencyMS: float64(10*len(strategy) + i)}
			if rank < 0 { // nothing to find
				a.EvidenceRanks = nil
			}
			run.Answers = append(run.Answers, a)
		}
	}
	return run
}

func TestContrastsOfStrategies(t *testing.T) {
	run := recorded("d", map[string][]int{
		"sparse": {4, 2, 2, 2, 2, 2, 1, -1},
		"dense":  {1, 1, 1, 1, 1, 1, 2, -1},
		"hybrid": {4, 1, 2, 2, 2, 2, 1, -1},
	})
	c, err := CompareStrategies(run, "sparse", "mrr@10")
	require.NoError(t, err)
	require.Len(t, c.All, 2)
	dense, hybrid := c.All[0], c.All[1]

	require.Equal(t, "dense − sparse", dense.Name)
	require.Equal(t, 7, dense.Cases)
	require.InDelta(t, (0.75+5*0.5-0.5)/7, dense.Difference.Mean, 1e-12)
	require.InDelta(t, (1.25+2.5)/7, dense.First, 1e-12)
	// The sum of all, one of the six halves turned, is reached by 1 of .75 and at
	// most one turned half, whichever it is: 7 of 128 assignments, and as many below.
	require.InDelta(t, 14.0/128, dense.P, 1e-12)
	require.InDelta(t, 28.0/128, dense.Holm, 1e-12)
	require.Equal(t, "no detectable difference", dense.Verdict())
	require.Equal(t, Change{"a", 0.25, 1, []int{4}, []int{1}}, dense.Better[0])
	require.Len(t, dense.Better, 6)
	require.Equal(t, []Change{{"g", 1, 0.5, []int{1}, []int{2}}}, dense.Worse)
	require.Less(t, dense.LatencyP, 0.01, "every latency is lower")

	require.Equal(t, 1.0, hybrid.P, "one difference alone says nothing")
	require.Empty(t, hybrid.Worse)
}

func TestAContrastThatIsDetected(t *testing.T) {
	many := func(rank int) []int {
		ranks := make([]int, 12)
		for i := range ranks {
			ranks[i] = rank
		}
		return ranks
	}
	c, err := CompareRuns(recorded("d", map[string][]int{"dense": many(2)}), recorded("d", map[string][]int{"dense": many(1), "hybrid": many(1)}), "ndcg@10")
	require.NoError(t, err)
	require.Len(t, c.All, 1)
	require.Equal(t, "better", c.All[0].Verdict())
	c, err = CompareRuns(recorded("d", map[string][]int{"dense": many(1)}), recorded("d", map[string][]int{"dense": many(0)}), "ndcg@10")
	require.NoError(t, err)
	require.Equal(t, "worse", c.All[0].Verdict())
	require.InDelta(t, -1, c.Figures()["dense.ndcg@10.difference"], 1e-12)
	require.Contains(t, c.Markdown(), "dense: worse, 12 cases")
}

func TestContrastsThatCannotBe(t *testing.T) {
	run := recorded("d", map[string][]int{"dense": {1}})
	for want, compare := range map[string]func() (Contrasts, error){
		"different cases": func() (Contrasts, error) {
			return CompareRuns(run, recorded("e", map[string][]int{"dense": {1}}), "mrr@1")
		},
		"nothing to compare": func() (Contrasts, error) {
			return CompareRuns(run, recorded("d", map[string][]int{"sparse": {1}}), "mrr@1")
		},
		"strategy \"hybrid\"":  func() (Contrasts, error) { return CompareStrategies(run, "hybrid", "mrr@1") },
		"metric \"mrr\"":       func() (Contrasts, error) { return CompareRuns(run, run, "mrr") },
		"metric \"p@1\"":       func() (Contrasts, error) { return CompareStrategies(run, "dense", "p@1") },
		"metric \"recall@0\"":  func() (Contrasts, error) { return CompareRuns(run, run, "recall@0") },
		"nothing to compare: ": func() (Contrasts, error) { return CompareStrategies(run, "dense", "mrr@1") },
	} {
		_, err := compare()
		require.ErrorContains(t, err, want)
	}
}

// What a run wrote can be read, and is not different from itself.
func TestARunIsReadBack(t *testing.T) {
	dir := t.TempDir()
	f := newFake(nil)
	report, err := gate(t, f, func(o *Options) { o.Out = dir })
	require.NoError(t, err)
	run, err := ReadRun(dir)
	require.NoError(t, err)
	want, err := json.Marshal(report)
	require.NoError(t, err)
	got, err := json.Marshal(run.Report)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
	c, err := CompareRuns(run, run, "ndcg@10")
	require.NoError(t, err)
	require.Equal(t, 70, c.All[0].Cases)
	require.Equal(t, 1.0, c.All[0].P)

	_, err = ReadRun(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "eval run --out")
}
