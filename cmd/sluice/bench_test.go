package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A daemon of its own is started, filled, measured and ended.
func TestBenchServe(t *testing.T) {
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	needModel(t)
	path, profile := filepath.Join(t.TempDir(), "figures.json"), filepath.Join(t.TempDir(), "cpu.pprof")
	r := sluice(t, "bench", "serve", "--self", "--cpuprofile", profile, "--dataset", groundedAccess, "--rounds", "1", "--turn", "500ms",
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
	info, err := os.Stat(profile)
	require.NoError(t, err)
	require.Positive(t, info.Size(), "the daemon's")
}

func TestBenchServeErrors(t *testing.T) {
	r := sluice(t, "bench", "serve", "--server", "http://127.0.0.1:1", "--dataset", groundedAccess)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "--server needs --secret")
	r = sluice(t, "bench", "serve", "--self", "--dataset", groundedAccess, "--model", "no-such-model")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "the daemon does not start")
}

// Searches, a writer and revocations meet one daemon, whose data stays for the
// next run.
func TestBenchHybrid(t *testing.T) {
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	dir, err := pulled()
	if err != nil {
		unavailable(t, "the model "+modelName, err)
	}
	t.Setenv("SLUICE_CACHE", t.TempDir())
	texts, path := t.TempDir(), filepath.Join(t.TempDir(), "figures.json")
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "Entry %d of the harbour's ledger tells of tide, wind and the ship number %d.\n\n", i, i*i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(texts, "ledger.txt"), []byte(text.String()), 0o600))
	run := func() result {
		return sluice(t, "bench", "hybrid", texts, "--passages", "100", "--filter", "100", "--rate", "20", "--rounds", "1", "--turn", "300ms",
			"--model", dir, "--json", path)
	}
	r := run()
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "100 of 100 passages were new")
	f := readFigures(t, path)
	for _, name := range []string{
		"hybrid.idle.p50_ms", "hybrid.idle.p95_ms", "hybrid.ingesting.p95_ms", "ratio.hybrid.p95.ingesting_to_idle",
		"ingesting.documents_per_s", "revocation.idle.p50_ms", "revocation.rate.p95_ms", "revocation.busy.p95_ms",
	} {
		require.Positive(t, f[name], name)
	}
	require.Equal(t, 100.0, f["visible"])
	r = run()
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "0 of 100 passages were new")
	require.Equal(t, 100.0, readFigures(t, path)["visible"], "nothing is left of what was written beside the searches")
}
