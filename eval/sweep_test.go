package eval

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
)

// swept is a sweep against fakes, with the searches that each was asked.
type swept struct {
	Sweep
	asked [][]client.SearchRequest
	err   error
}

// sweep has the evidence at the rank that a request deserves.
func sweep(t *testing.T, strategies []string, rank func(client.SearchRequest) int) swept {
	t.Helper()
	var s swept
	s.Sweep, s.err = Tune(context.Background(), SweepOptions{
		Datasets: []string{groundedDir}, Strategies: strategies, Chunkers: []string{""}, Precisions: []string{"f32"},
		Connect: func(precision string) Connector {
			require.Equal(t, "f32", precision)
			f, service := newFake(nil), len(s.asked)
			s.asked = append(s.asked, nil)
			f.onRequest = func(request client.SearchRequest, r *client.SearchResponse) {
				s.asked[service] = append(s.asked[service], request)
				for range rank(request) - 1 {
					r.Results = append([]client.SearchResult{{Document: "hr-volunteer-policy", Version: 1}}, r.Results...)
				}
			}
			f.onSearch = func(p Principal, r *client.SearchResponse) {
				if p.Tenant != "northstar" {
					for i := range r.Results {
						if r.Results[i].Document == "hr-volunteer-policy" {
							r.Results[i].Document = "it-faq"
						}
					}
				}
			}
			return f.connect
		},
	})
	return s
}

func pool(request client.SearchRequest) int {
	if request.Ranking == nil {
		return 0
	}
	return request.Ranking.PoolDepth
}

func TestTheBestPointIsChosenOnDev(t *testing.T) {
	s := sweep(t, []string{"dense", "hybrid-late"}, func(request client.SearchRequest) int {
		if pool(request) == 50 && request.Ranking.LateLexicalWeight >= 0.5 {
			return 1
		}
		return 3
	})
	require.NoError(t, s.err)
	require.Len(t, s.Points, 1+len(grid("hybrid-late")))
	want := Point{Precision: "f32", Strategy: "hybrid-late", Ranking: client.Ranking{PoolDepth: 50, LateLexicalWeight: 0.5}}
	require.Equal(t, want, s.Chosen.Point)
	require.Equal(t, want, s.Best.Point)
	require.InDelta(t, 1, s.Chosen.NDCG["grounded-access"], 1e-12)
	require.InDelta(t, 0.5, s.Points[0].Behind, 1e-12)
	require.Less(t, s.Points[0].P, 0.001)

	// One run on test, by the chosen point and by nothing else.
	require.Len(t, s.Tests, 1)
	require.Equal(t, "test", s.Tests[0].Split)
	require.Len(t, s.asked, 2)
	require.Len(t, s.asked[0], 23*len(s.Points), "the answerable cases of dev")
	require.Len(t, s.asked[1], 94)
	for _, request := range s.asked[1] {
		require.Equal(t, want.Strategy, request.Strategy)
		require.Equal(t, &want.Ranking, request.Ranking)
	}
	require.InDelta(t, 1, s.Figures()["test.grounded-access.hybrid-late.ndcg@10"], 1e-12)
}

// A gain in one case of 23 is noise: the service's own choice stays.
func TestAPointThatIsNotDetectablyBetterIsNotChosen(t *testing.T) {
	first := ""
	s := sweep(t, []string{"hybrid-late"}, func(request client.SearchRequest) int {
		if first == "" {
			first = request.Query
		}
		if request.Query == first && pool(request) != 100 {
			return 2
		}
		return 1
	})
	require.NoError(t, s.err)
	require.Equal(t, 100, s.Best.Ranking.PoolDepth)
	require.Equal(t, Point{Precision: "f32", Strategy: "hybrid-late"}, s.Chosen.Point)
	for _, request := range s.asked[1] {
		require.Nil(t, request.Ranking)
	}
	require.Contains(t, s.Markdown(), "Chosen, as the first that is not detectably worse than the best: f32 hybrid-late (")
}

func TestASweepIsWritten(t *testing.T) {
	s := sweep(t, []string{"dense"}, func(client.SearchRequest) int { return 1 })
	require.NoError(t, s.err)
	dir := filepath.Join(t.TempDir(), "sweep")
	require.NoError(t, s.write(dir))
	text, err := os.ReadFile(filepath.Join(dir, "sweep.json"))
	require.NoError(t, err)
	var back Sweep
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, s.Chosen.Point, back.Chosen.Point)
	require.FileExists(t, filepath.Join(dir, "report.md"))
}

func TestSweepsThatCannotBe(t *testing.T) {
	_, err := Tune(context.Background(), SweepOptions{Strategies: []string{"dense"}})
	require.ErrorContains(t, err, "at least one data set")

	s := sweep(t, []string{"dense"}, func(client.SearchRequest) int { return 1 })
	require.NoError(t, s.err)

	// A data set without a dev split has nothing to tune on: not its test cases.
	dir := filepath.Join(t.TempDir(), "grounded-access")
	require.NoError(t, os.CopyFS(dir, os.DirFS(groundedDir)))
	cases := filepath.Join(dir, "eval", "cases.jsonl")
	labelled, err := readLines[map[string]any](cases)
	require.NoError(t, err)
	file, err := os.Create(cases)
	require.NoError(t, err)
	for _, c := range labelled {
		c["split"] = "test"
		require.NoError(t, json.NewEncoder(file).Encode(c))
	}
	require.NoError(t, file.Close())
	_, err = Tune(context.Background(), SweepOptions{
		Datasets: []string{dir}, Strategies: []string{"dense"}, Chunkers: []string{""}, Precisions: []string{""},
		Connect: func(string) Connector { return newFake(nil).connect },
	})
	require.ErrorContains(t, err, `no split "dev"`)

	degraded := newFake(nil)
	degraded.onSearch = func(_ Principal, r *client.SearchResponse) { r.Degraded = []string{"late_unavailable"} }
	_, err = Tune(context.Background(), SweepOptions{
		Datasets: []string{groundedDir}, Strategies: []string{"dense"}, Chunkers: []string{""}, Precisions: []string{""},
		Connect: func(string) Connector { return degraded.connect },
	})
	require.ErrorContains(t, err, "late_unavailable")
}

// No two points of a grid are the same, and the first is the service's own.
func TestGrids(t *testing.T) {
	for _, strategy := range []string{"sparse", "dense", "hybrid", "hybrid-late"} {
		seen := map[Point]bool{}
		for _, p := range grid(strategy) {
			require.False(t, seen[p], "%s", p)
			seen[p] = true
		}
		require.Equal(t, Point{Strategy: strategy}, grid(strategy)[0])
	}
	require.Equal(t, "f32 fixed/1 hybrid rrf rrf_constant=10 lexical_weight=0.5",
		Point{Chunker: "fixed/1", Precision: "f32", Strategy: "hybrid", Fusion: "rrf", Ranking: client.Ranking{RRFConstant: 10, LexicalWeight: 0.5}}.String())
}
