//go:build nvidia

package worker

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"sluice/gpu"
	"sluice/gpu/cuda/wire"
	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/model"
)

// opened is a device with a slot, both bound to the test.
func opened(t *testing.T) (*Device, *Slot) {
	t.Helper()
	d, err := Open(0)
	require.NoError(t, err)
	slot, err := d.NewSlot()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, slot.Close())
		require.NoError(t, d.Close())
	})
	return d, slot
}

func (d *Device) loaded(t *testing.T, name string, change func(m *model.Model), kernels ...wire.Tried) *Model {
	t.Helper()
	require.NoError(t, d.Bind()) // a subtest has a goroutine of its own
	m, err := model.Load(filepath.Join(golden.Dir, name))
	require.NoError(t, err)
	if change != nil {
		change(m)
	}
	loaded, err := d.Load(m, kernels...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loaded.Close()) })
	return loaded
}

// answerTo runs cases together.
func (s *Slot) answerTo(t *testing.T, m *Model, want wire.Want, cases ...golden.Case) wire.Answer {
	t.Helper()
	a, err := s.Run(m, &wire.Run{Want: want, Batch: *golden.Batch(cases...)})
	require.NoError(t, err)
	return wire.Answer{Pooled: clone(a.Pooled), Norms: clone(a.Norms), Logits: clone(a.Logits), Tokens: clone(a.Tokens)}
}

func clone[T any](x []T) []T { return append([]T(nil), x...) }

func cosine(a, b []float32) float64 {
	return float64(ref.Dot(a, b)) / math.Sqrt(float64(ref.Dot(a, a))*float64(ref.Dot(b, b)))
}

// Every family, on the device, is where float32 has it as far as bfloat16 goes.
func TestTinyModelsMeetTheirGoldens(t *testing.T) {
	t.Chdir("..") // where golden.Dir is right
	d, slot := opened(t)
	for _, name := range golden.Models(t) {
		t.Run(name, func(t *testing.T) {
			want := golden.Expected(t, golden.Source(name))
			cases := golden.Cases(t, golden.Source(name))
			if strings.Contains(name, "seqcls") {
				checkLogits(t, slot, d.loaded(t, name, nil), cases, want)
				return
			}
			checkVectors(t, slot, d.loaded(t, name, pooled(model.MeanPooling)), "mean", cases, want)
			checkVectors(t, slot, d.loaded(t, name, pooled(model.CLSPooling)), "cls", cases[:2], want)
		})
	}
}

func pooled(p model.Pooling) func(*model.Model) { return func(m *model.Model) { m.Pooling = p } }

func checkLogits(t *testing.T, slot *Slot, m *Model, cases []golden.Case, want golden.Expectation) {
	got := slot.answerTo(t, m, wire.WantLogits, cases...).Logits
	var all []float32
	for i := range cases {
		all = append(all, want.Tensor(fmt.Sprintf("case%d.logits", i), m.labels())...)
	}
	golden.RequireNear(t, all, got, 0.3, "logits")
	require.Greater(t, cosine(all, got), 0.997)
}

func checkVectors(t *testing.T, slot *Slot, m *Model, pooling string, cases []golden.Case, want golden.Expectation) {
	got := slot.answerTo(t, m, wire.WantPooled|wire.WantTokens, cases...)
	width, at := m.dimensions(), 0
	for i, c := range cases {
		key := fmt.Sprintf("case%d.", i)
		vector, tokens := got.Pooled[i*width:][:width], make([]float32, len(c.IDs)*width)
		for j := range tokens {
			tokens[j] = ref.FromBF16(got.Tokens[at*width+j])
		}
		at += len(c.IDs)
		require.Greater(t, cosine(want.Tensor(key+pooling+"_normalized", width), vector), 1-2e-4, key)
		require.InDelta(t, 1, ref.Dot(vector, vector), 1e-5, key)
		require.Greater(t, cosine(want.Tensor(key+"last_hidden_state", len(c.IDs), width), tokens), 1-2e-4, key)
		length := want.Tensor(key+pooling, width)
		require.InEpsilon(t, math.Sqrt(float64(ref.Dot(length, length))), got.Norms[i], 2e-2, key)
	}
}

// families has a model of every kind.
var families = []string{"bert_gelu_tanh_h48", "roberta", "bert_seqcls_3", "mpnet", "modernbert_seqcls_mean", "nomic_bert"}

// Contract: a batch never changes a number, not in a single bit, nor does a
// batch that had to run in parts.
func TestBatchesChangeNothing(t *testing.T) {
	t.Chdir("..")
	d, slot := opened(t)
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			m := d.loaded(t, name, nil)
			want := wire.WantPooled | wire.WantTokens
			if m.labels() > 0 {
				want |= wire.WantLogits
			}
			cases := golden.Cases(t, name)[:4]
			var alone wire.Answer
			for _, c := range cases {
				a := slot.answerTo(t, m, want, c)
				alone.Pooled, alone.Norms = append(alone.Pooled, a.Pooled...), append(alone.Norms, a.Norms...)
				alone.Logits, alone.Tokens = append(alone.Logits, a.Logits...), append(alone.Tokens, a.Tokens...)
			}
			require.Equal(t, alone, slot.answerTo(t, m, want, cases...))
			small, err := d.NewSlot()
			require.NoError(t, err)
			small.refused = m.plan(want, 4, golden.Batch(cases...).Tokens(), 4).device
			require.Equal(t, alone, small.answerTo(t, m, want, cases...))
			require.NoError(t, small.Close())
		})
	}
}

// Pooled vectors pass projections before they are of unit length.
func TestProjections(t *testing.T) {
	t.Chdir("..")
	d, slot := opened(t)
	weight := make([]float32, 5*32)
	for i := range weight {
		weight[i] = float32(i%7-3) / 8
	}
	c := golden.Cases(t, "bert")[0]
	project := func(m *model.Model) {
		dense := model.Dense{Weight: weight, Bias: make([]float32, 5), In: 32, Out: 5}
		back := model.Dense{Weight: weight[:10], Bias: []float32{1, 2}, In: 5, Out: 2}
		m.Projections = []model.Projection{{Dense: dense, Activation: model.Tanh}, {Dense: back, Activation: model.Identity}}
	}
	plain := slot.answerTo(t, d.loaded(t, "bert", nil), wire.WantPooled, c)
	middle, want := make([]float32, 5), make([]float32, 2)
	for i := range plain.Pooled {
		plain.Pooled[i] *= plain.Norms[0]
	}
	ref.Linear(middle, plain.Pooled, weight, make([]float32, 5), 32, 5)
	ref.Tanh(middle)
	ref.Linear(want, middle, weight[:10], []float32{1, 2}, 5, 2)
	norm := ref.Normalize(want)
	got := slot.answerTo(t, d.loaded(t, "bert", project), wire.WantPooled, c)
	golden.RequireNear(t, want, got.Pooled, 1e-4, "projected")
	require.InEpsilon(t, norm, got.Norms[0], 1e-4)
}

func TestRefusals(t *testing.T) {
	t.Chdir("..")
	d, slot := opened(t)
	m := d.loaded(t, "bert", nil)
	for _, bad := range []wire.Run{
		{Want: wire.WantPooled, Batch: *golden.Batch(golden.Case{IDs: []int32{1 << 20}, Types: []int32{0}})},
		{Want: wire.WantPooled, Batch: *golden.Batch(golden.Case{IDs: make([]int32, 65), Types: make([]int32, 65)})},
		{Want: wire.WantLogits, Batch: *golden.Batch(golden.Cases(t, "bert")[0])},
	} {
		_, err := slot.Run(m, &bad)
		require.ErrorIs(t, err, gpu.ErrInput)
	}
	wide, err := model.Load(filepath.Join(golden.Dir, "bert"))
	require.NoError(t, err)
	wide.Config.Hidden, wide.Config.Heads = 2048, 16
	_, err = d.Load(wide)
	require.ErrorIs(t, err, model.ErrUnsupported)
	_, err = Open(99)
	require.ErrorIs(t, err, ErrNoDevice)
}

// A sequence that the device has no memory for is refused, and the next ones
// are not.
func TestOutOfMemory(t *testing.T) {
	t.Chdir("..")
	d, slot := opened(t)
	m := d.loaded(t, "bert", nil)
	cases := golden.Cases(t, "bert")
	free, _, err := cu.MemInfo()
	require.NoError(t, err)
	hog, err := cu.MemAlloc(free - 64<<10)
	require.NoError(t, err)
	_, err = slot.Run(m, &wire.Run{Want: wire.WantPooled, Batch: *golden.Batch(cases...)})
	require.ErrorIs(t, err, errMemory)
	require.ErrorContains(t, err, "memory does not suffice")
	require.NoError(t, cu.MemFree(hog))
	slot.answerTo(t, m, wire.WantPooled, golden.Case{IDs: []int32{1}, Types: []int32{0}})
}
