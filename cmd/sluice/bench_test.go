package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A daemon of its own is started, filled, measured and ended.
func TestBenchServe(t *testing.T) {
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	needModel(t)
	path := filepath.Join(t.TempDir(), "figures.json")
	r := sluice(t, "bench", "serve", "--self", "--dataset", groundedAccess, "--rounds", "1", "--turn", "500ms",
		"--connections", "1,4", "--idle", "20", "--json", path)
	require.Zero(t, r.code, "%s", r)
	f := readFigures(t, path)
	for _, name := range []string{
		"sluice.embed.c1.p50_ms", "sluice.embed.c4.requests_per_s", "sluice.embed.c4.cpu_ms", "sluice.embed.c4.rss_mb",
		"sluice.search.load80.p99_ms", "engine.batch_ms", "ratio.tokens_per_s.sluice_to_engine", "idle.rss_mb",
	} {
		require.Positive(t, f[name], name)
	}
	require.Equal(t, 20.0, f["idle.connections"])
}

func TestBenchServeErrors(t *testing.T) {
	r := sluice(t, "bench", "serve", "--server", "http://127.0.0.1:1", "--dataset", groundedAccess)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "--server needs --secret")
	r = sluice(t, "bench", "serve", "--self", "--dataset", groundedAccess, "--model", "no-such-model")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "the daemon does not start")
}
