package cpu

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/safetensors"
)

const (
	modelsDir = "../../model/testdata"
	tolerance = 5e-5 // of the tiny models: what float32 and a different order of sums leave
)

// goldens are tiny models, and the folder whose expectations they meet.
var goldens = map[string]string{
	"bert": "bert", "bert_f16": "bert_f16", "bert_bf16": "bert_bf16", "bert_f16_overflow": "bert_f16_overflow",
	"bert_gelu_tanh_h48": "bert_gelu_tanh_h48", "bert_sharded": "bert", "bert_legacy_names": "bert",
	"bert_e2e_wordpiece_cased": "bert_e2e_wordpiece_cased",
}

type goldenCase struct {
	IDs   []int32 `json:"ids"`
	Types []int32 `json:"type_ids"`
}

func readCases(t *testing.T, name string) []goldenCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(modelsDir, name, "cases.json"))
	require.NoError(t, err)
	var file struct{ Cases []goldenCase }
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}

// expectation reads expected.safetensors.
type expectation struct {
	t       *testing.T
	archive *safetensors.Archive
}

func readExpectation(t *testing.T, path string) expectation {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), data, 0o644))
	archive, err := safetensors.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { archive.Close() })
	return expectation{t, archive}
}

func (e expectation) tensor(name string, shape ...int) []float32 {
	e.t.Helper()
	values, err := e.archive.Float32(name, shape...)
	require.NoError(e.t, err)
	return values
}

func requireNear(t *testing.T, want, got []float32, limit float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		// Written so that a NaN fails.
		if d := math.Abs(float64(want[i]) - float64(got[i])); !(d <= limit) {
			t.Fatalf("%s: element %d is %v, want %v (off by %.2g)", what, i, got[i], want[i], d)
		}
	}
}

func openDevice(t *testing.T, name string, pooling model.Pooling, kernels *simd.Set) *Device {
	t.Helper()
	m, err := model.Load(filepath.Join(modelsDir, name))
	require.NoError(t, err)
	m.Pooling = pooling
	d := newDevice(m, 2, kernels)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func batchOf(cases ...goldenCase) *gpu.Batch {
	var b gpu.Batch
	b.Reset()
	for _, c := range cases {
		b.Append(c.IDs, c.Types)
	}
	return &b
}

func embed(t *testing.T, d *Device, cases ...goldenCase) []float32 {
	t.Helper()
	dst := make([]float32, len(cases)*d.Dimensions())
	require.NoError(t, d.Run(t.Context(), batchOf(cases...), gpu.Output{Pooled: dst}))
	return dst
}

func TestTinyModelsMeetTheirGoldens(t *testing.T) {
	for name, source := range goldens {
		for _, kernels := range simd.Supported() {
			t.Run(name+"/"+kernels.Level, func(t *testing.T) {
				checkGoldens(t, name, readCases(t, source), readExpectation(t, filepath.Join(modelsDir, source, "expected.safetensors")), kernels)
			})
		}
	}
}

func checkGoldens(t *testing.T, name string, cases []goldenCase, want expectation, kernels *simd.Set) {
	mean := openDevice(t, name, model.MeanPooling, kernels)
	cls := openDevice(t, name, model.CLSPooling, kernels)
	hidden := mean.Dimensions()
	together := embed(t, mean, cases...)
	for i, c := range cases {
		key := fmt.Sprintf("case%d.", i)
		alone := embed(t, mean, c)
		requireNear(t, want.tensor(key+"mean_normalized", hidden), alone, tolerance, key+"mean")
		tokens := make([]float32, len(c.IDs)*hidden)
		require.NoError(t, mean.Run(t.Context(), batchOf(c), gpu.Output{Tokens: tokens}))
		requireNear(t, want.tensor(key+"last_hidden_state", len(c.IDs), hidden), tokens, tolerance, key+"hidden")
		require.Equal(t, alone, together[i*hidden:(i+1)*hidden], key+"alone and in a batch")
		requireNear(t, want.tensor(key+"cls_normalized", hidden), embed(t, cls, c), tolerance, key+"cls")
		checkLayers(t, mean, c, want, key)
	}
}

// checkLayers compares the residual stream after every layer, where the
// goldens have it.
func checkLayers(t *testing.T, d *Device, c goldenCase, want expectation, key string) {
	if !want.archive.Has(key + "hidden_states.0") {
		return
	}
	batch := batchOf(c)
	d.lookup(batch)
	for i := 0; ; i++ {
		state := fmt.Sprintf("%shidden_states.%d", key, i)
		requireNear(t, want.tensor(state, len(c.IDs), d.Dimensions()), d.ws.x, tolerance, state)
		if i == len(d.layers) {
			return
		}
		d.forward(d.layers[i], batch.Offsets)
	}
}

func TestGoldensAreThere(t *testing.T) {
	entries, err := os.ReadDir(modelsDir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() {
			require.Contains(t, goldens, e.Name())
		}
	}
	require.True(t, slices.ContainsFunc(entries, os.DirEntry.IsDir))
}
