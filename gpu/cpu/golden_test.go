package cpu

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
	"sluice/kernels/simd"
	"sluice/model"
)

func openDevice(t *testing.T, name string, pooling model.Pooling, kernels *simd.Set) *Device {
	t.Helper()
	m, err := model.Load(filepath.Join(golden.Dir, name))
	require.NoError(t, err)
	m.Pooling = pooling
	d := newDevice(m, 2, kernels)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func embed(t *testing.T, d *Device, cases ...golden.Case) []float32 {
	t.Helper()
	dst := make([]float32, len(cases)*d.Dimensions())
	require.NoError(t, d.Run(t.Context(), golden.Batch(cases...), gpu.Output{Pooled: dst}))
	return dst
}

func classify(t *testing.T, d *Device, cases ...golden.Case) []float32 {
	t.Helper()
	dst := make([]float32, len(cases)*d.Labels())
	require.NoError(t, d.Run(t.Context(), golden.Batch(cases...), gpu.Output{Logits: dst}))
	return dst
}

func TestTinyModelsMeetTheirGoldens(t *testing.T) {
	for _, name := range golden.Models(t) {
		for _, kernels := range simd.Supported() {
			t.Run(name+"/"+kernels.Level, func(t *testing.T) {
				want := golden.Read(t, filepath.Join(golden.Dir, golden.Source(name), "expected.safetensors"))
				cases := golden.Cases(t, golden.Source(name))
				if strings.Contains(name, "seqcls") {
					checkLogits(t, openDevice(t, name, model.MeanPooling, kernels), cases, want, name)
				} else {
					checkVectors(t, name, cases, want, kernels)
				}
			})
		}
	}
}

func checkLogits(t *testing.T, d *Device, cases []golden.Case, want golden.Expectation, name string) {
	limit := golden.Tolerance
	if name == "xlmr_seqcls_e2e_unigram" {
		limit = 1e-4
	}
	together := classify(t, d, cases...)
	for i, c := range cases {
		key := fmt.Sprintf("case%d.", i)
		alone := classify(t, d, c)
		golden.RequireNear(t, want.Tensor(key+"logits", d.Labels()), alone, limit, key+"logits")
		require.Equal(t, alone, together[i*d.Labels():][:d.Labels()], key+"alone and in a batch")
		checkLayers(t, d, c, want, key)
	}
}

func checkVectors(t *testing.T, name string, cases []golden.Case, want golden.Expectation, kernels *simd.Set) {
	mean := openDevice(t, name, model.MeanPooling, kernels)
	cls := openDevice(t, name, model.CLSPooling, kernels)
	hidden := mean.Dimensions()
	together := embed(t, mean, cases...)
	for i, c := range cases {
		key := fmt.Sprintf("case%d.", i)
		alone, tokens := make([]float32, hidden), make([]float32, len(c.IDs)*hidden)
		require.NoError(t, mean.Run(t.Context(), golden.Batch(c), gpu.Output{Pooled: alone, Tokens: tokens}))
		golden.RequireNear(t, want.Tensor(key+"mean_normalized", hidden), alone, golden.Tolerance, key+"mean")
		golden.RequireNear(t, want.Tensor(key+"last_hidden_state", len(c.IDs), hidden), tokens, golden.Tolerance, key+"hidden")
		require.Equal(t, alone, together[i*hidden:(i+1)*hidden], key+"alone and in a batch")
		golden.RequireNear(t, want.Tensor(key+"cls_normalized", hidden), embed(t, cls, c), golden.Tolerance, key+"cls")
		checkLayers(t, mean, c, want, key)
	}
}

// checkLayers compares the residual stream after every layer, where the
// goldens have it.
func checkLayers(t *testing.T, d *Device, c golden.Case, want golden.Expectation, key string) {
	if !want.Has(key + "hidden_states.0") {
		return
	}
	batch := golden.Batch(c)
	d.lookup(batch)
	for i := 0; ; i++ {
		if i == len(d.layers) {
			d.norm(d.ws.x, d.encoder.Final)
		}
		state := fmt.Sprintf("%shidden_states.%d", key, i)
		golden.RequireNear(t, want.Tensor(state, len(c.IDs), d.config.Hidden), d.ws.x, golden.Tolerance, state)
		if i == len(d.layers) {
			return
		}
		d.forward(d.layers[i], batch.Offsets)
	}
}
