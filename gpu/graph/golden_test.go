package graph

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
	"sluice/model"
)

func load(t *testing.T, name string) *model.Model {
	t.Helper()
	m, err := model.Load(filepath.Join(golden.Dir, name))
	require.NoError(t, err)
	return m
}

// runAll asks for everything that the device has.
func runAll(t *testing.T, d gpu.Device, hidden int, cases ...golden.Case) gpu.Output {
	t.Helper()
	b := golden.Batch(cases...)
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
	for _, name := range golden.Models(t) {
		t.Run(name, func(t *testing.T) {
			m, want := load(t, name), golden.Expected(t, golden.Source(name))
			m.Pooling = model.MeanPooling
			mean := New(m)
			m.Pooling = model.CLSPooling
			cls := New(m)
			for i, c := range golden.Cases(t, golden.Source(name)) {
				key := fmt.Sprintf("case%d.", i)
				got := runAll(t, mean, m.Config.Hidden, c)
				if strings.Contains(name, "seqcls") {
					want.Near(got.Logits, 1e-4, key+"logits", mean.Labels())
					continue
				}
				want.Near(got.Pooled, golden.Tolerance, key+"mean_normalized", m.Config.Hidden)
				want.Near(got.Tokens, golden.Tolerance, key+"last_hidden_state", len(c.IDs), m.Config.Hidden)
				want.Near(runAll(t, cls, m.Config.Hidden, c).Pooled, golden.Tolerance, key+"cls_normalized", m.Config.Hidden)
			}
		})
	}
}
