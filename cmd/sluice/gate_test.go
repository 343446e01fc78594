package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/bench/figures"
	"sluice/needs"
)

const groundedAccess = "../../eval/testdata/grounded-access"

// relabelled is a copy of the data set with one text of its labels replaced.
func relabelled(t *testing.T, old, replacement string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "grounded-access")
	require.NoError(t, os.CopyFS(dir, os.DirFS(groundedAccess)))
	file := filepath.Join(dir, "labels-derived.yaml")
	labels, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(labels), old), "the labels hold %q", old)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(labels), old, replacement, 1)), 0o600))
	return dir
}

func evalRun(t *testing.T, dataset, strategies, json string) result {
	t.Helper()
	needs.Model(t)
	return sluice(t, "eval", "run", dataset, "--self", "--split", "test", "--strategies", strategies, "--json", json)
}

// The figures are those of the plain reference with the same model.
func TestEvaluationPassesAndReachesItsFigures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "figures.json")
	r := evalRun(t, groundedAccess, "sparse,dense,hybrid,hybrid-late", file)
	require.Zero(t, r.code, "%s", r)

	measured := readFigures(t, file)
	require.Contains(t, measured, "leaks")
	require.Contains(t, measured, "scope_failures")
	require.Zero(t, measured["leaks"])
	require.Zero(t, measured["scope_failures"])
	for name, least := range map[string]float64{"dense.ndcg@10": .886, "hybrid.ndcg@10": .919, "hybrid-late.ndcg@10": .944, "sparse.ndcg@10": .816} {
		require.GreaterOrEqual(t, measured[name], least, name)
		precisions := documented(t, "The gate", "`"+name+"`")
		require.InDelta(t, precisions[2], measured[name], .006, "docs/measured.md: %s", name)
	}
}

// Nobody can tell by any answer that a document exists that they may not see.
func TestProbesTellNothing(t *testing.T) {
	t.Parallel()
	needs.Model(t)
	file := filepath.Join(t.TempDir(), "figures.json")
	r := sluice(t, "eval", "run", groundedAccess, "--self", "--split", "dev", "--strategies", "sparse,hybrid-late", "--probes", "--json", file)
	require.Zero(t, r.code, "%s", r)
	measured := readFigures(t, file)
	require.Greater(t, measured["probes"], 600.0)
	require.Contains(t, measured, "probe_failures")
	require.Zero(t, measured["probe_failures"])
	require.Zero(t, measured["leaks"])
}

func readFigures(t *testing.T, file string) map[string]float64 {
	t.Helper()
	f, err := figures.Read(file)
	require.NoError(t, err)
	return f.Figures
}

func TestEvaluationFindsARestrictedDocumentThatWasLabelledPublic(t *testing.T) {
	t.Parallel()
	const label = "file: corpus/northstar/security-key-ceremony.md\n    classification: "
	dataset := relabelled(t, label+"restricted", label+"public")
	file := filepath.Join(t.TempDir(), "figures.json")

	r := evalRun(t, dataset, "sparse", file)

	require.Equal(t, 2, r.code, "%s", r)
	require.Contains(t, r.err, "leak")
	require.Contains(t, r.err, "security-key-ceremony")
	require.Positive(t, readFigures(t, file)["leaks"])
}

func TestEvaluationFindsDocumentsOutOfScope(t *testing.T) {
	t.Parallel()
	for what, label := range map[string][3]string{
		"region":   {"    regions:\n    - EU\n", "", "hr-public-holidays-eu"},
		"validity": {"valid_from: '2025-01-01T00:00:00Z'", "valid_from: '2023-01-01T00:00:00Z'", "hr-travel-policy-2025"},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "figures.json")
			r := evalRun(t, relabelled(t, label[0], label[1]), "sparse", file)

			require.Equal(t, 3, r.code, "%s", r)
			require.Contains(t, r.err, label[2])
			require.Positive(t, readFigures(t, file)["scope_failures"])
			require.Zero(t, readFigures(t, file)["leaks"])
		})
	}
}
