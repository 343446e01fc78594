package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/bench/figures"
)

// runFile is a run of a command in which a figure took so many milliseconds.
func runFile(t *testing.T, path, command string, rounds ...float64) {
	t.Helper()
	f := figures.New(t.Context(), "ref")
	f.Command = "sluice " + command
	f.Median("x.p50_ms", rounds)
	require.NoError(t, f.Write(path))
}

func TestBenchCompare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	runFile(t, at("a.json"), "bench serve --null", 10, 11, 12, 13)
	runFile(t, at("b.json"), "bench serve --null", 20, 21, 22, 23)
	r := sluice(t, "bench", "compare", at("a.json"), at("b.json"))
	require.Zero(t, r.code, "%s", r)
	require.Regexp(t, `x\.p50_ms +11\.5 +21\.5 +\+87\.0 % +p=0\.029 +n=4\+4 +worse`, r.out)

	r = sluice(t, "bench", "compare", at("a.json"), at("b.json"), "--gate", "50")
	require.Equal(t, worseStatus, r.code)
	require.Contains(t, r.err, "worse by more than 50 %: x.p50_ms")
	require.Zero(t, sluice(t, "bench", "compare", at("a.json"), at("b.json"), "--gate", "90").code)
	require.Zero(t, sluice(t, "bench", "compare", at("b.json"), at("a.json"), "--gate", "1").code, "better is not worse")

	r = sluice(t, "bench", "compare", at("a.json"), at("a.json"), "--gate", "0.001")
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "no detectable difference")
}

// Runs of a folder are compared command by command, and add up.
func TestBenchCompareFolders(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	for i := range 4 {
		name := fmt.Sprintf("%d.json", i)
		runFile(t, filepath.Join(a, name), "bench serve", 10+float64(i))
		runFile(t, filepath.Join(b, name), "bench serve", 20+float64(i))
	}
	runFile(t, filepath.Join(a, "embed.json"), "bench embed", 1, 2, 3, 4)
	r := sluice(t, "bench", "compare", a, b)
	require.Zero(t, r.code, "%s", r)
	require.Contains(t, r.out, "n=4+4")
	require.NotContains(t, r.out, "bench embed")

	other := t.TempDir()
	runFile(t, filepath.Join(other, "x.json"), "bench rerank", 1)
	r = sluice(t, "bench", "compare", a, other)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "none in common")
	r = sluice(t, "bench", "compare", a, t.TempDir())
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "has no .json files")
}

// What a run says of itself: what it was, where, and how it went.
func TestBenchRunFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, profile := filepath.Join(dir, "run.json"), filepath.Join(dir, "cpu.pprof")
	r := sluice(t, "bench", "serve", "--null", "--json", filepath.Join(dir, "nowhere", "run.json"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "--json: no file can be written there")
	require.Empty(t, r.out, "nothing was measured in vain")
	r = sluice(t, "bench", "serve", "--null", "--connections", "1", "--rounds", "2", "--turn", "50ms", "--json", path, "--cpuprofile", profile)
	require.Zero(t, r.code, "%s", r)
	f, err := figures.Read(path)
	require.NoError(t, err)
	require.Equal(t, "bench serve", f.Name())
	require.Equal(t, "50ms", f.Flags["turn"])
	require.Equal(t, []string{profile}, f.Profiles)
	require.Positive(t, f.Figures["requests_per_s"])
	require.Len(t, f.Rounds["requests_per_s"], 2)
	require.Positive(t, f.Seconds)
	require.NotEmpty(t, f.Histograms["error"])
	info, err := os.Stat(profile)
	require.NoError(t, err)
	require.Positive(t, info.Size())
}
