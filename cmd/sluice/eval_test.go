package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/bench/figures"
	"sluice/needs"
)

func TestEvalValidate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "figures.json")
	r := sluice(t, "eval", "validate", groundedAccess, "--json", file)
	require.Zero(t, r.code, "%s", r)
	f, err := figures.Read(file)
	require.NoError(t, err)
	require.Equal(t, 96.0, f.Figures["items"])
	for i, name := range []string{"items", "overlap", "low_overlap"} {
		require.InDelta(t, documented(t, "What data sets are worth", "grounded-access")[i], f.Figures[name], .0006, name)
	}
	require.Equal(t, "0.5", f.Flags["low"])
	require.NotEmpty(t, f.Environment.Kernels)
	require.NotEmpty(t, f.Modules)
	require.Positive(t, f.Seconds)

	r = sluice(t, "eval", "validate", groundedAccess, "--share", "0.9")
	require.Equal(t, 1, r.code, "%s", r)
	require.Contains(t, r.err, "in other words")
	require.Contains(t, r.out, "96 items", "what was measured is shown")
}

// A run is compared with itself and within itself, and its misses are traced.
func TestEvalCompareAndFailures(t *testing.T) {
	t.Parallel()
	needs.Model(t)
	dir := t.TempDir()
	run, file := filepath.Join(dir, "run"), filepath.Join(dir, "figures.json")
	r := sluice(t, "eval", "run", groundedAccess, "--self", "--split", "dev", "--strategies", "sparse,hybrid-late,auto", "--out", run)
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "What nDCG@10 goes with")
	require.Contains(t, r.out, "auto chose sparse for")

	r = sluice(t, "eval", "compare", run, run)
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "no detectable difference")
	r = sluice(t, "eval", "compare", run, "--json", file)
	require.Zero(t, r.code, "%s", r)
	require.Positive(t, readFigures(t, file)["hybrid-late.minus.sparse.ndcg@10.difference"])
	r = sluice(t, "eval", "compare", dir)
	require.NotZero(t, r.code)
	require.Contains(t, r.err, "eval run --out")

	misses := filepath.Join(dir, "misses")
	r = sluice(t, "eval", "failures", groundedAccess, "--self", "--split", "dev", "--strategies", "sparse,auto", "--at", "1", "--out", misses, "--json", file)
	require.Zero(t, r.code, "%s", r)
	require.Positive(t, readFigures(t, file)["sparse.misses"])
	require.Positive(t, readFigures(t, file)["auto.misses"])
	entries, err := os.ReadDir(misses)
	require.NoError(t, err)
	require.Greater(t, len(entries), 1)
}

func TestEvalSweep(t *testing.T) {
	t.Parallel()
	needs.Model(t)
	file := filepath.Join(t.TempDir(), "figures.json")
	r := sluice(t, "eval", "sweep", groundedAccess, "--strategies", "sparse,dense", "--json", file)
	require.Zero(t, r.code, "%s", r)
	measured := readFigures(t, file)
	require.Equal(t, 2.0, measured["points"])
	require.Contains(t, measured, "test.grounded-access.leaks")
	require.Zero(t, measured["test.grounded-access.leaks"])
}

// Golden files need neither a model nor a service.
func TestEvalAxes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "figures.json")
	r := sluice(t, "eval", "axes", "--twins", "../../eval/fidelity/testdata/twins", "--out", dir, "--json", file)
	require.Zero(t, r.code, "%s", r)
	require.Equal(t, 1.0, readFigures(t, file)["parse.html.text"])
	require.FileExists(t, filepath.Join(dir, "axes.json"))
	r = sluice(t, "eval", "axes", "--run", dir)
	require.NotZero(t, r.code)
	require.Contains(t, r.err, "--dataset")
}
