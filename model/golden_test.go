package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/model/safetensors"
)

// tolerance is what float32 leaves between the goldens and the oracle.
const tolerance = 5e-5

type goldenCase struct {
	IDs   []int32 `json:"ids"`
	Types []int32 `json:"type_ids"`
}

// golden is a tiny model's cases, in the folder of the model whose
// expectations it meets.
type golden struct {
	t        *testing.T
	name     string
	cases    []goldenCase
	expected *safetensors.Archive
}

// source is the folder with a model's expectations.
func source(name string) string {
	switch name {
	case "bert_sharded", "bert_legacy_names":
		return "bert"
	case "modernbert_hub_config":
		return "modernbert"
	}
	return name
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	g := golden{t: t, name: name}
	dir := filepath.Join("testdata", source(name))
	data, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	require.NoError(t, err)
	var file struct{ Cases []goldenCase }
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Cases)
	g.cases = file.Cases
	// The archive wants its usual name.
	data, err = os.ReadFile(filepath.Join(dir, "expected.safetensors"))
	require.NoError(t, err)
	archiveDir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(archiveDir, "model.safetensors"), data, 0o644))
	g.expected, err = safetensors.Open(archiveDir)
	require.NoError(t, err)
	t.Cleanup(func() { g.expected.Close() })
	return g
}

// near compares vectors, or a single one, with an expectation.
func (g golden) near(key string, got ...[]float64) {
	g.t.Helper()
	shape := []int{len(got), len(got[0])}
	if !strings.Contains(key, "hidden_state") {
		shape = shape[1:]
	}
	want, err := g.expected.Float32(key, shape...)
	require.NoError(g.t, err)
	limit := tolerance
	if g.name == "xlmr_seqcls_e2e_unigram" {
		limit = 1e-4
	}
	for i := range want {
		v := got[i/len(got[0])][i%len(got[0])]
		if d := math.Abs(v - float64(want[i])); !(d <= limit) {
			g.t.Fatalf("%s: element %d is %v, want %v (off by %.2g)", key, i, v, want[i], d)
		}
	}
}

// Every tiny model, layer by layer, through the plain reading of its
// description.
func TestDescriptionsMeetTheGoldens(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/config.json")
	require.NoError(t, err)
	require.Len(t, dirs, 21)
	for _, path := range dirs {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) { checkGolden(t, name) })
	}
}

func checkGolden(t *testing.T, name string) {
	m, err := Load(filepath.Join("testdata", name))
	require.NoError(t, err)
	g, o := readGolden(t, name), newOracle(m)
	for i, c := range g.cases {
		states := o.states(c.IDs, c.Types)
		last := states[len(states)-1]
		key := fmt.Sprintf("case%d.", i)
		for s := range states {
			if state := fmt.Sprintf("%shidden_states.%d", key, s); g.expected.Has(state) {
				g.near(state, states[s]...)
			}
		}
		if m.Classifier != nil {
			g.near(key+"logits", o.logits(last))
			continue
		}
		g.near(key+"last_hidden_state", last...)
		g.near(key+"mean", pool(last, MeanPooling))
		g.near(key+"cls", pool(last, CLSPooling))
	}
}
