package retrieve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/store"
)

func planOf(r Request) (Plan, error) { return newPlan(r, asked, models{"m", "x", oneBit}, english) }

func TestARankingReplacesThePlansOwn(t *testing.T) {
	all := Ranking{DenseDepth: 50, LexicalDepth: 60, PoolDepth: 40, DenseWeight: 2, LexicalWeight: 3, LateLexicalWeight: 0.2}
	plan, err := planOf(Request{Strategy: HybridLate, Ranking: all})
	require.NoError(t, err)
	require.Equal(t, all, plan.ranking())

	own, err := planOf(Request{Strategy: HybridLate})
	require.NoError(t, err)
	named, err := planOf(Request{Strategy: HybridLate, Ranking: own.ranking()})
	require.NoError(t, err)
	require.Equal(t, own.Hash(), named.Hash(), "naming the plan's own values changes nothing")

	one, err := planOf(Request{Strategy: HybridLate, Ranking: Ranking{PoolDepth: 50}})
	require.NoError(t, err)
	want := own.ranking()
	want.PoolDepth = 50
	require.Equal(t, want, one.ranking(), "what is not named stays")

	rrf, err := planOf(Request{Strategy: Hybrid, Fusion: RRF, Ranking: Ranking{LexicalWeight: 0.5}})
	require.NoError(t, err)
	require.Equal(t, Ranking{DenseDepth: 70, LexicalDepth: 100, RRFConstant: 60, LexicalWeight: 0.5}, rrf.ranking())
}

func TestDepthsAreNeverBelowK(t *testing.T) {
	plan, err := planOf(Request{Strategy: HybridLate, Fusion: RRF, K: 20, Ranking: Ranking{DenseDepth: 5, LexicalDepth: 5, PoolDepth: 5, RRFConstant: 1}})
	require.NoError(t, err)
	require.Equal(t, []int{20, 20, 20, 1}, []int{plan.DenseDepth, plan.LexicalDepth, plan.PoolDepth, plan.RRFConstant})
}

func TestRankingsThatAreRefused(t *testing.T) {
	for want, r := range map[string]Request{
		"sparse has no use for dense_depth":         {Strategy: Sparse, Ranking: Ranking{DenseDepth: 10}},
		"dense has no use for lexical_depth":        {Strategy: Dense, Ranking: Ranking{LexicalDepth: 10}},
		"dense has no use for dense_weight":         {Strategy: Dense, Ranking: Ranking{DenseWeight: 1}},
		"hybrid has no use for late_lexical_weight": {Strategy: Hybrid, Ranking: Ranking{LateLexicalWeight: 1}},
		"hybrid has no use for pool_depth":          {Strategy: Hybrid, Ranking: Ranking{PoolDepth: 20}},
		"hybrid has no use for rrf_constant":        {Strategy: Hybrid, Ranking: Ranking{RRFConstant: 20}},
		"dense_depth must be":                       {Strategy: Hybrid, Ranking: Ranking{DenseDepth: 1001}},
		"pool_depth must be":                        {Strategy: HybridLate, Ranking: Ranking{PoolDepth: -1}},
		"lexical_weight must be":                    {Strategy: Hybrid, Ranking: Ranking{LexicalWeight: -0.5}},
		"late_lexical_weight must be":               {Strategy: HybridLate, Ranking: Ranking{LateLexicalWeight: 101}},
	} {
		_, err := planOf(r)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// With a weight of 3 the second leg's second is worth more than the first leg's first.
func TestReciprocalRanksAreWeighed(t *testing.T) {
	legs := []leg{{name: "dense", weight: 1, hits: hits(1, 2)}, {name: "lexical", weight: 3, hits: hits(3, 4)}}
	fused := reciprocalRank(60, legs)
	require.Equal(t, []uint32{3, 4, 1, 2}, rowsOf(fused))
	require.InDelta(t, 3.0/62, fused[1].score, 1e-15)
}

// Of ranks the first of both legs are equal; of scores the one that is far above.
func TestEachFusionRanksInItsWay(t *testing.T) {
	legs := []leg{{name: "dense", weight: 1, hits: hits(1, 2)}, {name: "lexical", weight: 1, hits: hits(3, 4, 5, 6)}}
	for fusion, want := range map[string][]uint32{Score: {3, 4, 1, 5, 2, 6}, RRF: {1, 3, 2, 4, 5, 6}} {
		q := &query{engine: &Engine{now: time.Now}, plan: Plan{Strategy: Hybrid, Fusion: fusion, RRFConstant: 60}}
		require.Equal(t, want, rowsOf(q.fuse(legs)), fusion)
	}
}
