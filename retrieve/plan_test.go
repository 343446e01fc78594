package retrieve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/index/late"
	"sluice/store"
)

var (
	english = store.Settings{Analyzer: "english", CodeBits: 1}
	oneBit  = late.Kind{Dimensions: 64, Bits: 1}
	asked   = given{text: "a query", embedded: true}
)

func TestPlanOfEachStrategy(t *testing.T) {
	for strategy, want := range map[string]string{
		"sparse": `{"strategy":"sparse","k":10,"lexical_depth":100,"analyzer":"english"}`,
		"dense":  `{"strategy":"dense","k":10,"dense_depth":70,"model":"m"}`,
		"hybrid": `{"strategy":"hybrid","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"score",` +
			`"dense_weight":1,"lexical_weight":0.07,"model":"m","analyzer":"english"}`,
		"hybrid rrf": `{"strategy":"hybrid","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"rrf","rrf_constant":60,"model":"m","analyzer":"english"}`,
		"hybrid-late": `{"strategy":"hybrid-late","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"score",` +
			`"pool_depth":30,"dense_weight":1,"lexical_weight":0.07,"codes":"1bit/1","late_lexical_weight":0.4,"model":"m","analyzer":"english"}`,
		"hybrid-late rrf": `{"strategy":"hybrid-late","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"rrf","rrf_constant":60,` +
			`"pool_depth":30,"codes":"1bit/1","late_lexical_weight":0.4,"model":"m","analyzer":"english"}`,
		"late": `{"strategy":"late","k":10,"dense_depth":1000,"lexical_depth":1000,"rrf_constant":60,"pool_depth":2000,` +
			`"scan_rows":4000,"codes":"1bit/1","model":"m","analyzer":"english"}`,
		"hybrid-rerank": `{"strategy":"hybrid-rerank","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"score",` +
			`"pool_depth":30,"dense_weight":1,"lexical_weight":0.07,"model":"m","reranker":"x","analyzer":"english"}`,
	} {
		name, fusion, _ := strings.Cut(strategy, " ")
		plan, err := newPlan(Request{Strategy: name, Fusion: fusion}, asked, models{"m", "x", oneBit}, english)
		require.NoError(t, err)
		require.Equal(t, want, string(plan.Canonical()))
	}
}

func TestTheDefaultPlan(t *testing.T) {
	byDefault, err := newPlan(Request{}, asked, models{"m", "x", oneBit}, english)
	require.NoError(t, err)
	named, err := newPlan(Request{Strategy: HybridLate, Fusion: Score, K: 10}, asked, models{"m", "x", oneBit}, english)
	require.NoError(t, err)
	require.Equal(t, named, byDefault)
}

func TestPlanDepthNeverBelowK(t *testing.T) {
	plan, err := newPlan(Request{Strategy: HybridLate, K: 100}, asked, models{"m", "x", oneBit}, english)
	require.NoError(t, err)
	require.Equal(t, 100, plan.DenseDepth)
	require.Equal(t, 100, plan.LexicalDepth)
	require.Equal(t, 100, plan.PoolDepth)
}

func TestPlanHashNamesThePlan(t *testing.T) {
	hash := func(strategy string, k int, model string) string {
		name, fusion, _ := strings.Cut(strategy, " ")
		plan, err := newPlan(Request{Strategy: name, Fusion: fusion, K: k}, asked, models{model, "x", oneBit}, english)
		require.NoError(t, err)
		return plan.Hash()
	}
	seen := map[string]bool{}
	for _, h := range []string{hash(Dense, 10, "m"), hash(Dense, 5, "m"), hash(Dense, 10, "other"), hash(Sparse, 10, "m"), hash(Hybrid, 10, "m"),
		hash("hybrid rrf", 10, "m"), hash(HybridLate, 10, "m"), hash(HybridRerank, 10, "m"), hash("hybrid-late rrf", 10, "m")} {
		require.Len(t, h, 16)
		require.False(t, seen[h], "two plans share the hash %s", h)
		seen[h] = true
	}
	require.Equal(t, hash(Dense, 10, "m"), hash(Dense, 10, "m"))
	require.Equal(t, hash(Sparse, 10, "m"), hash(Sparse, 10, "another"), "a lexical plan does not depend on the model")
}

func TestPlanRefusals(t *testing.T) {
	for want, r := range map[string]Request{
		"k is -1":                    {Strategy: Dense, K: -1},
		"k is 101":                   {Strategy: Dense, K: 101},
		"sparse dense hybrid":        {Strategy: "magic"},
		"rrf score":                  {Strategy: Hybrid, Fusion: "magic"},
		"dense has nothing to fuse":  {Strategy: Dense, Fusion: RRF},
		"late has nothing to fuse":   {Strategy: Late, Fusion: RRF},
		"sparse has nothing to fuse": {Strategy: Sparse, Fusion: Score},
	} {
		_, err := newPlan(r, asked, models{"m", "x", oneBit}, english)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}
