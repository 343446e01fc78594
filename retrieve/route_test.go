package retrieve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/retrieve/complexity"
	"sluice/store"
)

// Queries that the model that is built in tells apart; a model trained anew may
// need others.
const (
	easyQuery   = "Which of the members of the board of the company were present at the annual meeting of the shareholders that was held in the spring"
	mediumQuery = "how is leave approved for contractors"
	hardQuery   = "retention 90 30"
)

func TestRoutesByThresholds(t *testing.T) {
	for value, want := range map[float64]string{
		0: Sparse, 0.2999: Sparse, 0.3: Hybrid, 0.5: Hybrid, 0.6999: Hybrid, 0.7: HybridLate, 1: HybridLate,
	} {
		require.Equal(t, want, chosenAt(value), "%v", value)
	}
}

func autoPlan(t *testing.T, r Request, g given) Plan {
	t.Helper()
	r.Strategy = Auto
	plan, err := newPlan(r, g, models{"m", "x", oneBit}, english)
	require.NoError(t, err)
	return plan
}

// The plan is the chosen strategy's, but for the router that chose it.
func TestAutoPlansWhatItChooses(t *testing.T) {
	version := complexity.Trained().Version()
	for query, want := range map[string]string{easyQuery: Sparse, mediumQuery: Hybrid, hardQuery: HybridLate} {
		plan := autoPlan(t, Request{Query: query}, given{text: query, embedded: true})
		require.Equal(t, want, plan.Strategy, query)
		require.Equal(t, version, plan.Router)
		fixed, err := newPlan(Request{Strategy: want}, given{text: query, embedded: true}, models{"m", "x", oneBit}, english)
		require.NoError(t, err)
		require.NotEqual(t, fixed.Hash(), plan.Hash(), "who chose is part of the plan")
		plan.Router = ""
		require.Equal(t, fixed, plan)
	}
}

func TestAutoWithoutAnEmbeddingIsSparse(t *testing.T) {
	for _, query := range []string{easyQuery, mediumQuery, hardQuery} {
		require.Equal(t, Sparse, autoPlan(t, Request{}, given{text: query}).Strategy)
	}
	require.Equal(t, Hybrid, autoPlan(t, Request{}, given{text: hardQuery, vector: []float32{1}}).Strategy)
}

func TestAutoRefusals(t *testing.T) {
	for want, of := range map[string]struct {
		r Request
		g given
	}{
		"needs query":              {Request{}, given{vector: []float32{1}}},
		"leave fusion and ranking": {Request{Fusion: RRF}, asked},
		"fusion and ranking out":   {Request{Ranking: Ranking{PoolDepth: 50}}, asked},
		"unknown fusion":           {Request{Fusion: "magic"}, asked},
	} {
		of.r.Strategy = Auto
		_, err := newPlan(of.r, of.g, models{"m", "x", oneBit}, english)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// An answer of auto is the chosen strategy's to the last bit, and says how it
// was chosen; where words suffice the model is not asked.
func TestAutoAnswersAsWhatItChooses(t *testing.T) {
	h := newHouse(t)
	h.write("a", readable(), "how leave is approved for contractors", "members of the board in the spring")
	h.write("b", readable(), "retention is 90 days, then 30")
	for query, want := range map[string]string{easyQuery: Sparse, mediumQuery: Hybrid, hardQuery: HybridLate} {
		h.embedder.taken()
		chosen := h.search(person("me"), Auto, query, 5)
		require.Equal(t, want == Sparse, len(h.embedder.taken()) == 0, query)
		require.Equal(t, want, chosen.Strategy)
		require.Equal(t, complexity.Trained().Of(query), chosen.Complexity)
		fixed := h.search(person("me"), want, query, 5)
		require.NotEmpty(t, fixed.Results)
		require.Zero(t, fixed.Complexity)
		require.NotEqual(t, fixed.PlanHash, chosen.PlanHash)
		chosen.Complexity, chosen.PlanHash = 0, fixed.PlanHash
		require.Equal(t, bytesOf(t, fixed), bytesOf(t, chosen))
	}
}
