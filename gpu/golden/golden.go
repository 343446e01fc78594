// Package golden reads the tiny models and what they are to give, for the tests
// of devices. Paths are those of a package two levels below the module's root.
package golden

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/model/safetensors"
)

// Dir has a folder for each model.
const Dir = "../../model/testdata"

// Tolerance is what float32 and a different order of sums leave.
const Tolerance = 5e-5

// Source is the folder whose expectations a model meets.
func Source(name string) string {
	switch name {
	case "bert_sharded", "bert_legacy_names":
		return "bert"
	case "modernbert_hub_config":
		return "modernbert"
	}
	return name
}

// Models lists the models.
func Models(t *testing.T) (names []string) {
	t.Helper()
	configs, err := filepath.Glob(filepath.Join(Dir, "*", "config.json"))
	require.NoError(t, err)
	require.Len(t, configs, 21)
	for _, path := range configs {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names
}

// Case is a sequence of tokens.
type Case struct {
	IDs   []int32 `json:"ids"`
	Types []int32 `json:"type_ids"`
}

// Cases reads those of a model.
func Cases(t *testing.T, name string) []Case {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir, name, "cases.json"))
	require.NoError(t, err)
	var file struct{ Cases []Case }
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Cases)
	for i := range file.Cases {
		if c := &file.Cases[i]; c.Types == nil {
			c.Types = make([]int32, len(c.IDs))
		}
	}
	return file.Cases
}

// Batch is of the cases, in their order.
func Batch(cases ...Case) *gpu.Batch {
	var b gpu.Batch
	b.Reset()
	for _, c := range cases {
		b.Append(c.IDs, c.Types)
	}
	return &b
}

// Expectation is a safetensors file of what is to come out.
type Expectation struct {
	t       *testing.T
	archive *safetensors.Archive
}

// Expected reads that of a model.
func Expected(t *testing.T, name string) Expectation {
	t.Helper()
	return Read(t, filepath.Join(Dir, name, "expected.safetensors"))
}

// Read reads the file of that path.
func Read(t *testing.T, path string) Expectation {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), data, 0o644))
	archive, err := safetensors.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { archive.Close() })
	return Expectation{t, archive}
}

// Has reports whether there is one of that name.
func (e Expectation) Has(name string) bool { return e.archive.Has(name) }

// Tensor returns one by its name.
func (e Expectation) Tensor(name string, shape ...int) []float32 {
	e.t.Helper()
	values, err := e.archive.Float32(name, shape...)
	require.NoError(e.t, err)
	return values
}

// RequireNear wants every element within the limit.
func RequireNear(t *testing.T, want, got []float32, limit float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		// Written so that a NaN fails.
		if d := math.Abs(float64(want[i]) - float64(got[i])); !(d <= limit) {
			t.Fatalf("%s: element %d is %v, want %v (off by %.2g)", what, i, got[i], want[i], d)
		}
	}
}

// Near wants what came out within the limit of the tensor of that name.
func (e Expectation) Near(got []float32, limit float64, name string, shape ...int) {
	e.t.Helper()
	RequireNear(e.t, e.Tensor(name, shape...), got, limit, name)
}
