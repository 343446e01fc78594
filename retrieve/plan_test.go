package retrieve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/store"
)

func TestPlanOfEachStrategy(t *testing.T) {
	for strategy, want := range map[string]string{
		"sparse": `{"strategy":"sparse","k":10,"lexical_depth":100,"analyzer":"english"}`,
		"dense":  `{"strategy":"dense","k":10,"dense_depth":70,"model":"m"}`,
		"hybrid": `{"strategy":"hybrid","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"rrf","rrf_constant":60,"model":"m","analyzer":"english"}`,
		"":       `{"strategy":"hybrid","k":10,"dense_depth":70,"lexical_depth":100,"fusion":"rrf","rrf_constant":60,"model":"m","analyzer":"english"}`,
	} {
		plan, err := newPlan(strategy, 0, "m", "english")
		require.NoError(t, err)
		require.Equal(t, want, string(plan.Canonical()))
	}
}

func TestPlanDepthNeverBelowK(t *testing.T) {
	plan, err := newPlan(Hybrid, 100, "m", "english")
	require.NoError(t, err)
	require.Equal(t, 100, plan.DenseDepth)
	require.Equal(t, 100, plan.LexicalDepth)
}

func TestPlanHashNamesThePlan(t *testing.T) {
	hash := func(strategy string, k int, model string) string {
		plan, err := newPlan(strategy, k, model, "english")
		require.NoError(t, err)
		return plan.Hash()
	}
	seen := map[string]bool{}
	for _, h := range []string{hash(Dense, 10, "m"), hash(Dense, 5, "m"), hash(Dense, 10, "other"), hash(Sparse, 10, "m"), hash(Hybrid, 10, "m")} {
		require.Len(t, h, 16)
		require.False(t, seen[h], "two plans share the hash %s", h)
		seen[h] = true
	}
	require.Equal(t, hash(Dense, 10, "m"), hash(Dense, 10, "m"))
	require.Equal(t, hash(Sparse, 10, "m"), hash(Sparse, 10, "another"), "a lexical plan does not depend on the model")
}

func TestPlanRefusals(t *testing.T) {
	for _, k := range []int{-1, 101} {
		_, err := newPlan(Dense, k, "m", "english")
		require.ErrorIs(t, err, store.ErrInvalid)
	}
	_, err := newPlan("magic", 10, "m", "english")
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "sparse dense hybrid")
}
