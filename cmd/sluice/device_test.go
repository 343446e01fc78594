package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/client"
	"sluice/gpu"
	"sluice/gpu/cuda"
	"sluice/kernels/simd"
)

// What one device has embedded another serves, in the same order and with the
// same scores but for the last bits.
func TestDevicesServeEachOthersVectors(t *testing.T) {
	t.Parallel()
	h := newHome(t, onePerson)
	search := func(d *served) []client.SearchResult {
		r, err := d.as("ann").Search(t.Context(), "c", client.SearchRequest{Query: "tides", Strategy: "hybrid-rerank"})
		require.NoError(t, err)
		require.Empty(t, r.Degraded)
		return r.Results
	}
	judge := tinyReranker(t)
	d := h.serve("--device", "gorgonia", "--reranker", judge)
	d.collection("ann", "c")
	for _, text := range []string{"The tides of the north sea.", "Ropes and tides.", "Sails."} {
		_, err := d.as("ann").Write(t.Context(), "c", client.Document{Key: text[:4], Format: "text", Text: text})
		require.NoError(t, err)
	}
	want := search(d)
	require.NotEmpty(t, want)
	d.stop()

	d = h.serve("--device", "cpu", "--precision", "f32", "--reranker", judge)
	got := search(d)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Document, got[i].Document)
		require.InDelta(t, want[i].Score, got[i].Score, 1e-4)
	}
	d.stop()
}

// Without a GPU, or what runs it, auto is the CPU, and cuda says what is missing.
func TestWithoutGPU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	d := daemon{log: slog.New(slog.DiscardHandler)}
	d.config.Device = "cuda:0"
	_, err := d.openScheduler(t.Context(), gpu.Options{}, []string{tinyReranker(t)})
	require.ErrorIs(t, err, cuda.ErrNoWorker)
	d.config.Device, d.config.Precision = "auto", "f32"
	s, err := d.openScheduler(t.Context(), gpu.Options{}, []string{tinyReranker(t)})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, "cpu", d.config.Device)
	var out bytes.Buffer
	require.NoError(t, listDevices(t.Context(), &out))
	require.Contains(t, out.String(), simd.Best().Level)
	require.Contains(t, out.String(), "no GPU: sluice-gpu is neither beside sluice nor in PATH")
}

// A GPU's kernels are listed for models that are named; what is no model is an error.
func TestDevicesOfModels(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	program := `#!/bin/sh
if [ $1 = list ]; then echo '[{"ordinal":2,"name":"a","compute":"9.0","kernels":"sm_90a"},{"ordinal":3,"kernels":"none"}]'; fi
if [ $1 = try ]; then echo '{"Kernel":"gemm_5","In":32,"Out":96,"Activation":"gelu","Rows":16,"Seconds":1}'; fi
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sluice-gpu"), []byte(program), 0o755))
	var out bytes.Buffer
	require.NoError(t, listDevices(t.Context(), &out, tinyReranker(t)))
	require.Contains(t, out.String(), "on cuda:2: matrices")
	require.Contains(t, out.String(), "32 × 96 gelu: 16 gemm_5\n")
	require.NotContains(t, out.String(), "on cuda:3: matrices")
	require.ErrorContains(t, listDevices(t.Context(), &out, dir), "is no model's directory")
}
