package graph

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
	"sluice/model"
	"sluice/model/safetensors"
)

const (
	modelsDir = "../../model/testdata"
	tolerance = 5e-5 // as of gpu/cpu: what float32 and a different order of sums leave
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
	require.GreaterOrEqual(t, len(configs), 21)
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

func readExpectation(t *testing.T, name string) expectation {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(modelsDir, name, "expected.safetensors"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), data, 0o644))
	archive, err := safetensors.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { archive.Close() })
	return expectation{t, archive}
}

func (e expectation) near(got []float32, limit float64, name string, shape ...int) {
	e.t.Helper()
	want, err := e.archive.Float32(name, shape...)
	require.NoError(e.t, err)
	requireNear(e.t, want, got, limit, name)
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

func load(t *testing.T, name string) *model.Model {
	t.Helper()
	m, err := model.Load(filepath.Join(modelsDir, name))
	require.NoError(t, err)
	return m
}

func batchOf(cases ...goldenCase) *gpu.Batch {
	var b gpu.Batch
	b.Reset()
	for _, c := range cases {
		b.Append(c.IDs, c.Types)
	}
	return &b
}

// runAll asks for everything that the device has.
func runAll(t *testing.T, d gpu.Device, hidden int, cases ...goldenCase) gpu.Output {
	t.Helper()
	b := batchOf(cases...)
	out := gpu.Output{
		Pooled: make([]float32, b.Len()*d.Dimensions()), Norms: make([]float32, b.Len()),
		Tokens: make([]float32, b.Tokens()*hidden),
	}
	if d.Labels() > 0 {
		out.Logits = make([]float32, b.Len()*d.Labels())
	}
	require.NoError(t, d.Run(t.Context(), b, out))
	return out
}

func TestTinyModelsMeetTheirGoldens(t *testing.T) {
	for _, name := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			m, want := load(t, name), readExpectation(t, source(name))
			m.Pooling = model.MeanPooling
			mean := New(m)
			m.Pooling = model.CLSPooling
			cls := New(m)
			for i, c := range readCases(t, source(name)) {
				key := fmt.Sprintf("case%d.", i)
				got := runAll(t, mean, m.Config.Hidden, c)
				if strings.Contains(name, "seqcls") {
					want.near(got.Logits, 1e-4, key+"logits", mean.Labels())
					continue
				}
				want.near(got.Pooled, tolerance, key+"mean_normalized", m.Config.Hidden)
				want.near(got.Tokens, tolerance, key+"last_hidden_state", len(c.IDs), m.Config.Hidden)
				want.near(runAll(t, cls, m.Config.Hidden, c).Pooled, tolerance, key+"cls_normalized", m.Config.Hidden)
			}
		})
	}
}
