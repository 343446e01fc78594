package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/needs"
)

// The checks alone make a model that answers everything refuse what it must, and
// leave it most of what it may answer; nothing is cited that is not there, and
// nothing that documents planted is said.
func TestAnswersOfAModelThatAnswersEverything(t *testing.T) {
	t.Parallel()
	needs.Model(t)
	file := filepath.Join(t.TempDir(), "figures.json")
	r := sluice(t, "eval", "answers", groundedAccess, "--split", "test", "--json", file)
	require.Zero(t, r.code, "%s", r)
	f := readFigures(t, file)
	require.EqualValues(t, 24, f["refusals"])
	require.EqualValues(t, 70, f["answerable"])
	require.GreaterOrEqual(t, f["refused"], 20.0)
	require.GreaterOrEqual(t, f["answered"], 60.0)
	require.Greater(t, f["share.accurate"], .5, "it quotes, though not always what was asked for")
	require.Contains(t, f, "context.2000.share.accurate", "the most frequent length")
	require.Contains(t, f, "context.0.share.refused", "what no passage mentions is asked of no model")
	for _, none := range []string{"leaks", "scope_failures", "degraded", "unfounded", "citations_to_nothing", "planted_said"} {
		require.Contains(t, f, none)
		require.Zero(t, f[none], none)
	}
}
