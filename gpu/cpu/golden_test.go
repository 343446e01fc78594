package cpu

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
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

// source is the folder whose expectations a tiny model meets.
func source(name string) string {
	switch name {
	case "bert_sharded", "bert_legacy_names":
		return "bert"
	case "modernbert_hub_config":
		return "modernbert"
	}
	return name
}

// goldens lists the tiny models.
func goldens(t *testing.T) (names []string) {
	t.Helper()
	configs, err := filepath.Glob(filepath.Join(modelsDir, "*", "config.json"))
	require.NoError(t, err)
	require.Len(t, configs, 21)
	for _, path := range configs {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names
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
	for i := range file.Cases {
		if c := &file.Cases[i]; c.Types == nil {
			c.Types = make([]int32, len(c.IDs))
		}
	}
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

func classify(t *testing.T, d *Device, cases ...goldenCase) []float32 {
	t.Helper()
	dst := make([]float32, len(cases)*d.Labels())
	require.NoError(t, d.Run(t.Context(), batchOf(cases...), gpu.Output{Logits: dst}))
	return dst
}

func TestTinyModelsMeetTheirGoldens(t *testing.T) {
	for _, name := range goldens(t) {
		for _, kernels := range simd.Supported() {
			t.Run(name+"/"+kernels.Level, func(t *testing.T) {
				want := readExpectation(t, filepath.Join(modelsDir, source(name), "expected.safetensors"))
				cases := readCases(t, source(name))
				if strings.Contains(name, "seqcls") {
					checkLogits(t, openDevice(t, name, model.MeanPooling, kernels), cases, want, name)
				} else {
					checkVectors(t, name, cases, want, kernels)
				}
			})
		}
	}
}

func checkLogits(t *testing.T, d *Device, cases []goldenCase, want expectation, name string) {
	limit := tolerance
	if name == "xlmr_seqcls_e2e_unigram" {
		limit = 1e-4
	}
	together := classify(t, d, cases...)
	for i, c := range cases {
		key := fmt.Sprintf("case%d.", i)
		alone := classify(t, d, c)
		requireNear(t, want.tensor(key+"logits", d.Labels()), alone, limit, key+"logits")
		require.Equal(t, alone, together[i*d.Labels():][:d.Labels()], key+"alone and in a batch")
		checkLayers(t, d, c, want, key)
	}
}

func checkVectors(t *testing.T, name string, cases []goldenCase, want expectation, kernels *simd.Set) {
	mean := openDevice(t, name, model.MeanPooling, kernels)
	cls := openDevice(t, name, model.CLSPooling, kernels)
	hidden := mean.Dimensions()
	together := embed(t, mean, cases...)
	for i, c := range cases {
		key := fmt.Sprintf("case%d.", i)
		alone, tokens := make([]float32, hidden), make([]float32, len(c.IDs)*hidden)
		require.NoError(t, mean.Run(t.Context(), batchOf(c), gpu.Output{Pooled: alone, Tokens: tokens}))
		requireNear(t, want.tensor(key+"mean_normalized", hidden), alone, tolerance, key+"mean")
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
		if i == len(d.layers) {
			d.norm(d.ws.x, d.encoder.Final)
		}
		state := fmt.Sprintf("%shidden_states.%d", key, i)
		requireNear(t, want.tensor(state, len(c.IDs), d.config.Hidden), d.ws.x, tolerance, state)
		if i == len(d.layers) {
			return
		}
		d.forward(d.layers[i], batch.Offsets)
	}
}
