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

// world scripts what the searches of one case find: the rank of its evidence in
// each leg and in the pool; 0 for none.
type world struct {
	dense, lexical, pool int
	plan                 client.Ranking
}

// answers lets a fake rank the evidence of all cases as scripted.
func (w world) answers(request client.SearchRequest, response *client.SearchResponse) {
	plan := w.plan
	response.Ranking = &plan
	evidence := response.Results
	response.Results = nil
	rank, leg := w.pool, ""
	switch request.Strategy {
	case "dense":
		rank, leg = w.dense, "dense"
	case "sparse":
		rank, leg = w.lexical, "lexical"
	}
	if rank == 0 || rank > request.K {
		return
	}
	for range rank - 1 {
		response.Results = append(response.Results, client.SearchResult{Document: "hr-volunteer-policy", Version: 1})
	}
	for _, result := range evidence {
		result.Explain = &client.Explain{Legs: map[string]client.LegExplain{leg: {Rank: rank}}}
		response.Results = append(response.Results, result)
	}
}

// traced follows the misses of the dev split by one strategy.
func traced(t *testing.T, f *fakeBackend, strategy string, w world) Failures {
	t.Helper()
	return tracedAt(t, f, strategy, w, 10)
}

func tracedAt(t *testing.T, f *fakeBackend, strategy string, w world, at int) Failures {
	t.Helper()
	f.onRequest = w.answers
	o := Options{Dataset: groundedDir, Split: "dev", Strategies: []string{strategy}, Ingest: true, Connect: f.connect}
	failures, err := Trace(context.Background(), o, at)
	require.NoError(t, err)
	require.True(t, f.closed)
	require.Equal(t, Passed, outcomeOf(failures.Findings))
	return failures
}

func TestWhereAnItemWasLost(t *testing.T) {
	both := client.Ranking{DenseDepth: 70, LexicalDepth: 100, PoolDepth: 30}
	rrf := client.Ranking{DenseDepth: 70, LexicalDepth: 100}
	for name, c := range map[string]struct {
		strategy string
		world    world
		stage    Stage
		layer    Layer
	}{
		"no leg has it":                    {"hybrid-late", world{0, 0, 0, both}, NotCandidate, LayerIndex},
		"too deep in the leg":              {"hybrid-late", world{71, 0, 0, both}, NotCandidate, LayerIndex},
		"at the end of the leg":            {"hybrid-late", world{70, 0, 0, both}, LostInFusion, LayerOutcome},
		"in the other leg alone":           {"hybrid-late", world{0, 100, 0, both}, LostInFusion, LayerOutcome},
		"scored again":                     {"hybrid-late", world{5, 5, 11, both}, LostInRerank, LayerOutcome},
		"at the end of the pool":           {"hybrid-rerank", world{5, 5, 30, both}, LostInRerank, LayerOutcome},
		"standard scores are of fusion":    {"hybrid", world{5, 5, 11, both}, LostInFusion, LayerOutcome},
		"reciprocal ranks have no pool":    {"hybrid", world{5, 5, 0, rrf}, LostInFusion, LayerOutcome},
		"the dense leg alone":              {"dense", world{11, 0, 0, client.Ranking{DenseDepth: 70}}, RankedLow, LayerOutcome},
		"the dense leg alone, too deep":    {"dense", world{80, 0, 0, client.Ranking{DenseDepth: 70}}, NotCandidate, LayerIndex},
		"the lexical leg alone":            {"sparse", world{0, 40, 0, client.Ranking{LexicalDepth: 100}}, RankedLow, LayerOutcome},
		"late interaction with everything": {"late", world{0, 0, 50, both}, RankedLow, LayerOutcome},
	} {
		failures := traced(t, newFake(nil), c.strategy, c.world)
		require.NotEmpty(t, failures.Misses, name)
		require.Equal(t, failures.Items, len(failures.Misses), name)
		for _, m := range failures.Misses {
			require.Equal(t, c.stage, m.Stage, name)
			require.Equal(t, c.layer, m.Layer, name)
			require.False(t, m.Cut, name)
		}
	}
}

func TestWhatIsFoundIsNoMiss(t *testing.T) {
	failures := traced(t, newFake(nil), "dense", world{dense: 1, plan: client.Ranking{DenseDepth: 70}})
	require.Empty(t, failures.Misses)
	require.Positive(t, failures.Items)

	second := world{dense: 2, plan: client.Ranking{DenseDepth: 70}}
	require.Empty(t, tracedAt(t, newFake(nil), "dense", second, 2).Misses)
	require.NotEmpty(t, tracedAt(t, newFake(nil), "dense", second, 1).Misses)
	far := world{dense: 20, plan: client.Ranking{DenseDepth: 70}}
	require.Empty(t, tracedAt(t, newFake(nil), "dense", far, 20).Misses)
	require.NotEmpty(t, tracedAt(t, newFake(nil), "dense", far, 19).Misses)
}

func TestAnItemLostBeforeAnySearch(t *testing.T) {
	w := world{plan: client.Ranking{DenseDepth: 70}}
	f := newFake(nil)
	f.onDocument = func(d *client.DocumentInfo) { d.Text = "nothing of it" }
	for _, m := range traced(t, f, "dense", w).Misses {
		require.Equal(t, NotParsed, m.Stage)
		require.Equal(t, LayerElement, m.Layer)
	}
	f = newFake(nil)
	f.refused = &client.Problem{Title: "Not found", Status: 404}
	misses := traced(t, f, "dense", w).Misses
	require.NotEmpty(t, misses)
	for _, m := range misses {
		require.Equal(t, Denied, m.Stage)
		require.Equal(t, LayerAccess, m.Layer)
	}
}

// A quote that the text holds, but none of the chunks made of the source.
func TestAnItemInNoChunk(t *testing.T) {
	f := newFake(nil)
	f.onDocument = func(d *client.DocumentInfo) { d.Text = string(make([]byte, len(d.Text))) + d.Text }
	misses := traced(t, f, "dense", world{plan: client.Ranking{DenseDepth: 70}}).Misses
	require.NotEmpty(t, misses)
	for _, m := range misses {
		require.Equal(t, NotChunked, m.Stage)
		require.Equal(t, LayerStructure, m.Layer)
		require.True(t, m.Cut)
	}
}

func TestMissesAreWritten(t *testing.T) {
	failures := traced(t, newFake(nil), "hybrid-late", world{3, 0, 0, client.Ranking{DenseDepth: 70, LexicalDepth: 100, PoolDepth: 30}})
	failures.Misses = failures.Misses[:2]
	failures.Misses[1].Case = "../a b"
	dir := filepath.Join(t.TempDir(), "misses")
	require.NoError(t, failures.write(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	text, err := os.ReadFile(filepath.Join(dir, failures.Misses[0].Case+".json"))
	require.NoError(t, err)
	var misses []Miss
	require.NoError(t, json.Unmarshal(text, &misses))
	require.Equal(t, failures.Misses[:1], misses)
	require.Contains(t, failures.Markdown(), "dense 3, lexical 0")
	require.Equal(t, 2.0, failures.Figures()["hybrid-late.lost.fusion"])
	require.Equal(t, 2.0, failures.Figures()["hybrid-late.misses"])
}

// A listing that differs from the labels means that nothing can be traced.
func TestTracingStopsAtADisagreement(t *testing.T) {
	f := newFake(nil)
	f.onList = func(_ Principal, listing []client.DocumentInfo) []client.DocumentInfo { return nil }
	_, err := Trace(context.Background(), Options{Dataset: groundedDir, Strategies: []string{"dense"}, Ingest: true, Connect: f.connect}, 10)
	require.ErrorIs(t, err, ErrDisagreement)
	f = newFake(nil)
	_, err = Trace(context.Background(), Options{Dataset: groundedDir, Strategies: []string{"dense"}, Ingest: true, Connect: f.connect}, 10)
	require.ErrorContains(t, err, "too old")
}
