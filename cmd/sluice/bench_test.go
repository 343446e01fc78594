package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/bench/figures"
	"sluice/eval"
)

// A daemon of its own is started, filled, measured and ended.
func TestBenchServe(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	path, profile := filepath.Join(t.TempDir(), "figures.json"), filepath.Join(t.TempDir(), "cpu.pprof")
	r := sluice(t, "bench", "serve", "--self", "--cpuprofile", profile, "--dataset", groundedAccess, "--rounds", "1", "--turn", "500ms",
		"--connections", "1,4", "--idle", "20", "--model", tinyModel, "--json", path)
	require.Zero(t, r.code, "%s", r)
	f := readFigures(t, path)
	for _, stage := range []string{"embed.c1.stage.queue", "embed.c1.stage.infer", "search.c4.stage.dense", "search.c4.stage.lexical", "search.load80.stage.recheck"} {
		require.Contains(t, f, "sluice."+stage+".p99_9_ms")
	}
	for _, name := range []string{
		"sluice.search.c4.cache.principals.hit_rate", "sluice.search.c4.allocs_per_request", "sluice.embed.c1.allocated_bytes_per_request",
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

// The searches of a log, by a principal of the data set and by another, and a mix.
func TestBenchServeReplay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	dir := t.TempDir()
	log, path := filepath.Join(dir, "log.ndjson"), filepath.Join(dir, "figures.json")
	require.NoError(t, os.WriteFile(log, []byte(`{"time":"2026-01-31T12:00:00.2Z","principal":{"tenant":"northstar","subject":"x","groups":["g"]},"collection":"grounded-access","query":"second","k":3}
{"time":"2026-01-31T12:00:00Z","principal":"alice-engineer","collection":"grounded-access","query":"first"}
`), 0o600))
	r := sluice(t, "bench", "serve", "--self", "--dataset", groundedAccess, "--model", tinyModel, "--rounds", "2", "--replay", log, "--json", path)
	require.Zero(t, r.code, "%s", r)
	f, err := figures.Read(path)
	require.NoError(t, err)
	require.Positive(t, f.Figures["sluice.replay.p99_ms"])
	require.LessOrEqual(t, f.Figures["sluice.replay.requests_per_s"], 10.0, "two in the fifth of a second that the log takes")
	requests := 0
	for _, s := range f.Series["sluice.replay"] {
		requests += s.Requests
	}
	require.Equal(t, 4, requests)

	for line, message := range map[string]string{
		`{"principal":"alice-engineer","collection":"c","query":"q"}`:                       "line 1: it has no time",
		`{"time":"2026-01-31T12:00:00Z","principal":"nobody","collection":"c","query":"q"}`: `principal "nobody" is none of the data set's`,
		`{"time":"2026-01-31T12:00:00Z","principal":{"subject":"x"},"collection":"c"}`:      "an object with tenant and subject is expected",
		`{"time":"2026-01-31T12:00:00Z","principal":"alice-engineer","query":"q"}`:          "it has no collection",
		"\n": "has no searches",
	} {
		require.NoError(t, os.WriteFile(log, []byte(line), 0o600))
		searches, err := readQueryLog(log)
		if err == nil {
			_, err = searches[0].principal(&eval.Dataset{})
		}
		require.ErrorContains(t, err, message)
	}
}

func TestBenchServeMix(t *testing.T) {
	dataset, err := eval.Load(groundedAccess)
	require.NoError(t, err)
	require.Len(t, benchServeCommand{}.mix(dataset), len(dataset.Cases))
	principals, lengths := map[string]int{}, map[int]int{}
	for _, one := range (benchServeCommand{Skew: 1, QueryWords: []int{2, 9}}).mix(dataset) {
		principals[one.principal]++
		lengths[len(strings.Fields(one.query))]++
	}
	require.Len(t, principals, len(dataset.Principals))
	require.Greater(t, principals[dataset.Principals[0].Name], 3*principals[dataset.Principals[4].Name])
	require.Len(t, lengths, 2)
}

func TestBenchServeErrors(t *testing.T) {
	t.Parallel()
	r := sluice(t, "bench", "serve", "--server", "http://127.0.0.1:1", "--dataset", groundedAccess)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "--server needs --secret")
	r = sluice(t, "bench", "serve", "--self", "--dataset", groundedAccess, "--model", "no-such-model")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "the daemon does not start")
}

// benchTexts is a folder with a text to make passages of.
func benchTexts(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "Entry %d of the harbour's ledger tells of tide, wind and the ship number %d.\n\n", i, i*i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ledger.txt"), []byte(text.String()), 0o600))
	return folder
}

// ownCache has a benchmark keep nothing for others, but for compiled code: making
// that takes half a minute.
func ownCache(t *testing.T) []string {
	t.Helper()
	shared, own := codeCache(), t.TempDir()
	require.NoError(t, os.MkdirAll(shared, 0o755))
	require.NoError(t, os.Symlink(shared, filepath.Join(own, filepath.Base(shared))))
	return []string{"SLUICE_CACHE=" + own}
}

func TestBenchIngest(t *testing.T) {
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "figures.json")
	r := launchWith(t, ownCache(t), "bench", "ingest", benchTexts(t), "--documents", "10", "--streams", "3", "--rounds", "2", "--model", tinyModel, "--json", path).result()
	require.Zero(t, r.code, "%s", r)
	f := readFigures(t, path)
	for _, name := range []string{"documents_per_s", "pages_per_s", "mb_per_s", "cpu_ms", "ack.p50_ms", "ack.max_ms"} {
		require.Positive(t, f["new."+name], name)
		require.Positive(t, f["known."+name], name)
	}
	require.Greater(t, f["new.cpu_ms"], f["known.cpu_ms"], "the second time nothing is embedded")
}

// Searches, a writer and revocations meet one daemon, whose data stays for the
// next run.
func TestBenchHybrid(t *testing.T) {
	if testing.Short() {
		t.Skip("a benchmark takes its time")
	}
	t.Parallel()
	texts, path, cache := benchTexts(t), filepath.Join(t.TempDir(), "figures.json"), ownCache(t)
	run := func() result {
		return launchWith(t, cache, "bench", "hybrid", texts, "--passages", "100", "--filter", "100,50", "--rate", "20", "--rounds", "1", "--turn", "300ms",
			"--beside", "auto", "--model", tinyModel, "--json", path).result()
	}
	r := run()
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "100 of 100 passages were new")
	f := readFigures(t, path)
	for _, name := range []string{
		"hybrid.idle.p50_ms", "hybrid.idle.p95_ms", "hybrid.ingesting.p95_ms", "ratio.hybrid.p95.ingesting_to_idle",
		"ingesting.documents_per_s", "revocation.idle.p50_ms", "revocation.rate.p95_ms", "revocation.busy.p95_ms",
		"strategy.hybrid.p50_ms", "strategy.auto.p95_ms", "ratio.p50.auto_to_hybrid", "ratio.p95.auto_to_hybrid.max",
	} {
		require.Positive(t, f[name], name)
	}
	require.Equal(t, 100.0, f["visible.100"])
	r = run()
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "0 of 100 passages were new")
	require.Equal(t, 100.0, readFigures(t, path)["visible.100"], "nothing is left of what was written beside the searches")
}
