package graph

import (
	"context"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/model"
)

// families has a model of every kind, heads included.
var families = []string{
	"bert_gelu_tanh_h48", "bert_seqcls_3", "distilbert", "roberta_seqcls_e2e_bpe_roberta", "xlmr_seqcls_e2e_unigram",
	"mpnet", "modernbert_seqcls_mean", "nomic_bert", "gte",
}

func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomCases are sequences of any ids, the shortest of one token.
func randomCases(r *rand.Rand, n int, c model.Config) (cases []golden.Case) {
	for i := range n {
		var s golden.Case
		for range 1 + r.IntN(1+i*min(c.Positions-1, 90)/n) {
			s.IDs = append(s.IDs, int32(r.IntN(c.Vocabulary)))
			s.Types = append(s.Types, int32(r.IntN(max(c.Types, 1))))
		}
		cases = append(cases, s)
	}
	return cases
}

// The oracle and the device that it watches: in every family, vectors, token
// vectors and logits are the same but for the last bits.
func TestAgreesWithTheCPU(t *testing.T) {
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			m, r := load(t, name), random(t)
			m.Pooling = []model.Pooling{model.MeanPooling, model.CLSPooling, model.LastPooling}[r.IntN(3)]
			fast := cpu.New(m, 2)
			defer fast.Close()
			cases := randomCases(r, 8, m.Config)
			want, got := runAll(t, fast, m.Config.Hidden, cases...), runAll(t, New(m), m.Config.Hidden, cases...)
			requireCosines(t, want.Pooled, got.Pooled, m.Config.Hidden)
			requireCosines(t, want.Tokens, got.Tokens, m.Config.Hidden)
			golden.RequireNear(t, want.Tokens, got.Tokens, golden.Tolerance, "tokens")
			golden.RequireNear(t, want.Logits, got.Logits, 1e-4, "logits")
			for i := range want.Norms {
				require.InEpsilon(t, want.Norms[i], got.Norms[i], 1e-5)
			}
		})
	}
}

func requireCosines(t *testing.T, want, got []float32, width int) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := 0; i < len(want); i += width {
		a, b := slices.Clone(want[i:i+width]), slices.Clone(got[i:i+width])
		ref.Normalize(a)
		ref.Normalize(b)
		require.GreaterOrEqual(t, float64(ref.Dot(a, b)), 0.99999, "row %d", i/width)
	}
}

// Pooled vectors pass the projections before they are normalised.
func TestProjections(t *testing.T) {
	m, r := load(t, "bert"), random(t)
	numbers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	m.Projections = []model.Projection{
		{Dense: model.Dense{Weight: numbers(40 * 32), Bias: numbers(40), In: 32, Out: 40}, Activation: model.Tanh},
		{Dense: model.Dense{Weight: numbers(1 * 40), Bias: numbers(1), In: 40, Out: 1}, Activation: model.SiLU},
		{Dense: model.Dense{Weight: numbers(7 * 1), Bias: numbers(7), In: 1, Out: 7}, Activation: model.ReLU},
	}
	fast := cpu.New(m, 1)
	defer fast.Close()
	b := golden.Batch(randomCases(r, 3, m.Config)...)
	want, got := make([]float32, 3*7), make([]float32, 3*7)
	require.NoError(t, fast.Run(t.Context(), b, gpu.Output{Pooled: want}))
	require.NoError(t, New(m).Run(t.Context(), b, gpu.Output{Pooled: got}))
	golden.RequireNear(t, want, got, 1e-5, "projected")
}

// Contract: a batch never changes a number, not in a single bit.
func TestBatchesChangeNothing(t *testing.T) {
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			m, r := load(t, name), random(t)
			d := New(m)
			cases := randomCases(r, 5, m.Config)
			r.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
			together := runAll(t, d, m.Config.Hidden, cases...)
			tokens := 0
			for i, c := range cases {
				alone := runAll(t, d, m.Config.Hidden, c)
				width := len(alone.Tokens)
				require.Equal(t, alone, gpu.Output{
					Pooled: together.Pooled[i*m.Config.Hidden:][:m.Config.Hidden], Norms: together.Norms[i : i+1],
					Tokens: together.Tokens[tokens:][:width], Logits: together.Logits[i*d.Labels() : (i+1)*d.Labels()],
				}, "sequence %d", i)
				tokens += width
			}
		})
	}
}

// Graphs share the model's weights and change none.
func TestWeightsStay(t *testing.T) {
	for _, name := range families {
		m := load(t, name)
		runAll(t, New(m), m.Config.Hidden, golden.Cases(t, name)...)
		require.True(t, reflect.DeepEqual(load(t, name), m), name)
	}
}

func TestRefusesWhatDoesNotFit(t *testing.T) {
	d := New(load(t, "bert"))
	good := golden.Batch(golden.Case{IDs: []int32{1}, Types: []int32{0}})
	require.ErrorIs(t, d.Run(t.Context(), golden.Batch(golden.Case{IDs: []int32{1000}, Types: []int32{0}}), gpu.Output{}), gpu.ErrInput)
	require.ErrorIs(t, d.Run(t.Context(), good, gpu.Output{Pooled: make([]float32, 31)}), gpu.ErrInput)
	require.ErrorContains(t, d.Run(t.Context(), good, gpu.Output{Logits: make([]float32, 1)}), "classification head")
	require.NoError(t, d.Run(t.Context(), golden.Batch(), gpu.Output{}))
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Run(t.Context(), good, gpu.Output{Pooled: make([]float32, 32)}), ErrClosed)
}

// A panic in Gorgonia is an error of that batch, and of no other.
func TestPanicsAreErrors(t *testing.T) {
	d := New(load(t, "bert"))
	c := golden.Case{IDs: []int32{900, 901}, Types: []int32{0, 1}}
	run := func() error {
		return d.Run(t.Context(), golden.Batch(c), gpu.Output{Pooled: make([]float32, 32)})
	}
	layer, norm := d.weights.layers[0], d.weights.norm
	d.weights.layers[0].up.weight = matrix(make([]float32, 6), 2, 3)
	require.ErrorIs(t, run(), ErrPanic, "while the graph is made")
	d.weights.layers[0] = layer
	d.weights.norm.bias = matrix(make([]float32, 3), 1, 3)
	require.ErrorIs(t, run(), ErrPanic, "while it is computed")
	d.weights.norm = norm
	require.NoError(t, run())
}

// expiring is a context that ends after it has been looked at so many times.
type expiring struct {
	context.Context
	looks int
}

func (e *expiring) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestContextsEndRuns(t *testing.T) {
	d := New(load(t, "bert"))
	b := golden.Batch(golden.Cases(t, "bert")[0])
	never := &expiring{t.Context(), 1 << 30}
	require.NoError(t, d.Run(never, b, gpu.Output{Pooled: make([]float32, 32)}))
	looks := 1<<30 - never.looks
	require.Greater(t, looks, 20*d.config.Layers, "it is looked at in every layer")
	for _, after := range []int{0, 1, looks / 2, looks - 1} {
		require.ErrorIs(t, d.Run(&expiring{t.Context(), after}, b, gpu.Output{Pooled: make([]float32, 32)}), context.Canceled)
	}
}

// Two devices and their callers at the same time; go test -race looks closer.
func TestConcurrentBatches(t *testing.T) {
	m, judge := load(t, "bert"), load(t, "roberta_seqcls_e2e_bpe_roberta")
	var all sync.WaitGroup
	for _, m := range []*model.Model{m, judge} {
		d := New(m)
		cases := golden.Cases(t, m.Name)
		want := runAll(t, d, m.Config.Hidden, cases...).Pooled
		for range 3 {
			all.Go(func() {
				got := make([]float32, len(want))
				if err := d.Run(t.Context(), golden.Batch(cases...), gpu.Output{Pooled: got}); err != nil {
					t.Error(err)
				}
				if !slices.Equal(want, got) {
					t.Error("vectors differ")
				}
			})
		}
	}
	all.Wait()
}

// Nothing is kept of a run: neither memory nor goroutines.
func TestManyRunsLeaveNothing(t *testing.T) {
	m := load(t, "modernbert")
	d := New(m)
	cases := randomCases(random(t), 40, m.Config)
	run := func() {
		b := golden.Batch(cases...)
		require.NoError(t, d.Run(t.Context(), b, gpu.Output{Pooled: make([]float32, b.Len()*32)}))
	}
	run()
	bytes, goroutines := inUse(), runtime.NumGoroutine()
	for range 5 {
		run()
	}
	require.Less(t, inUse(), bytes+200*4096, "200 graphs, of which none takes less than 4 KiB a run")
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // empties the pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
