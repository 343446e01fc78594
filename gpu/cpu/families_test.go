package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

// wide lists what sets the families apart. Its models meet the fast kernels; the
// tiny models are too narrow for those.
var wide = map[string]func(c *model.Config){
	"bert": func(*model.Config) {},
	"bert, tanh": func(c *model.Config) {
		c.Activation = model.GELUTanh
	},
	"mpnet": func(c *model.Config) {
		c.Types, c.Offset, c.Buckets = 0, 2, 32
	},
	"nomic": func(c *model.Config) {
		c.Gated, c.Activation = true, model.SiLU
		everywhere(c, model.Attention{Theta: 1000})
	},
	"gte": func(c *model.Config) {
		c.Gated, c.Types = true, 1
		everywhere(c, model.Attention{Theta: 20000, Stretch: 1.07})
	},
	"modernbert": func(c *model.Config) {
		c.Gated, c.PreNorm, c.Types = true, true, 0
		everywhere(c, model.Attention{Theta: 10000, Window: 64})
		c.Attention[0] = model.Attention{Theta: 160000}
	},
}

func everywhere(c *model.Config, a model.Attention) {
	c.Attention = slices.Repeat([]model.Attention{a}, c.Layers)
}

// small is wide enough for the fast kernels.
func small(vocabulary int) model.Config {
	return model.Config{Hidden: 128, Layers: 3, Heads: 2, Intermediate: 384, Vocabulary: vocabulary, Positions: 320}
}

// newWide makes a model of a shape, with random weights, one in fifty of them an
// outlier.
func newWide(family string, c model.Config) *model.Model {
	c.Types, c.Activation, c.Epsilon = 2, model.GELU, 1e-12
	everywhere(&c, model.Attention{})
	wide[family](&c)
	w := weights{rand.New(rand.NewPCG(11, uint64(len(family))))}
	e := model.Encoder{Word: w.numbers(c.Vocabulary*c.Hidden, 1), Norm: w.norm(c.Hidden)}
	if c.Types > 0 {
		e.Type = w.numbers(c.Types*c.Hidden, 0.3)
	}
	if c.Attention[0].Theta == 0 {
		e.Position = w.numbers((c.Offset+c.Positions)*c.Hidden, 0.3)
	}
	if c.Buckets > 0 {
		e.Relative = w.numbers(c.Buckets*c.Heads, 1)
	}
	for i := range c.Layers {
		e.Layers = append(e.Layers, w.layer(c, c.PreNorm && i == 0))
	}
	if c.PreNorm {
		e.Final = w.norm(c.Hidden)
	}
	return &model.Model{Name: family, Config: c, Encoder: e, Pooling: model.MeanPooling, MaxTokens: c.Positions}
}

type weights struct{ *rand.Rand }

func (w weights) numbers(n int, deviation float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(w.NormFloat64() * deviation)
		if w.IntN(50) == 0 {
			x[i] *= 5
		}
	}
	return x
}

func (w weights) dense(in, out int) model.Dense {
	return model.Dense{In: in, Out: out, Weight: w.numbers(in*out, 0.7/math.Sqrt(float64(in))), Bias: w.numbers(out, 0.1)}
}

func (w weights) norm(n int) model.Norm {
	gain := w.numbers(n, 0.1)
	for i := range gain {
		gain[i]++
	}
	return model.Norm{Gain: gain, Bias: w.numbers(n, 0.1)}
}

func (w weights) layer(c model.Config, first bool) model.Layer {
	l := model.Layer{
		Query: w.dense(c.Hidden, c.Hidden), Key: w.dense(c.Hidden, c.Hidden), Value: w.dense(c.Hidden, c.Hidden),
		AttentionOut: w.dense(c.Hidden, c.Hidden), AttentionNorm: w.norm(c.Hidden),
		Up: w.dense(c.Hidden, c.Intermediate), Down: w.dense(c.Intermediate, c.Hidden), OutputNorm: w.norm(c.Hidden),
	}
	if c.Gated {
		l.Gate = w.dense(c.Hidden, c.Intermediate)
	}
	if first {
		l.AttentionNorm = model.Norm{}
	}
	return l
}

// eachWide tests every family in some precisions on every set of kernels that
// has instructions for them.
func eachWide(t *testing.T, precisions []Precision, test func(t *testing.T, m *model.Model, p Precision, kernels *simd.Set)) {
	for family := range wide {
		m := newWide(family, small(1000))
		for _, p := range precisions {
			for _, kernels := range simd.Supported() {
				if kernels.Narrow() || kernels.Level == simd.Best().Level {
					t.Run(fmt.Sprintf("%s/%s/%s", family, p, kernels.Level), func(t *testing.T) { test(t, m, p, kernels) })
				}
			}
		}
	}
}

// Vectors and token vectors are near those of float32, from one token to the
// longest sequence.
func TestFamiliesAreNearFloat32(t *testing.T) {
	bounds := map[Precision]float64{BF16: 0.9999, Int8: 0.999}
	eachWide(t, narrowPrecisions, func(t *testing.T, m *model.Model, p Precision, kernels *simd.Set) {
		plain, d := openNarrow(t, m, 2, F32, simd.Best()), openNarrow(t, m, 2, p, kernels)
		require.Equal(t, string(p), d.Precision())
		cases := append(randomCases(rand.New(rand.NewPCG(4, 4)), 6, m.Config), longest(m.Config), shortest())
		want, got := runAll(t, plain, cases...), runAll(t, d, cases...)
		require.Greater(t, leastCosine(want.Pooled, got.Pooled, m.Config.Hidden), bounds[p], "vectors")
		require.Greater(t, leastCosine(want.Tokens, got.Tokens, m.Config.Hidden), bounds[p], "token vectors")
	})
}

func shortest() golden.Case { return golden.Case{IDs: []int32{5}, Types: []int32{0}} }

func longest(c model.Config) golden.Case {
	ids := make([]int32, c.Positions)
	for i := range ids {
		ids[i] = int32(7 * i % c.Vocabulary)
	}
	return golden.Case{IDs: ids, Types: make([]int32, c.Positions)}
}

// leastCosine compares rows of some width.
func leastCosine(a, b []float32, width int) float64 {
	least := 1.0
	for ; len(a) > 0; a, b = a[width:], b[width:] {
		x, y := append([]float32(nil), a[:width]...), append([]float32(nil), b[:width]...)
		ref.Normalize(x)
		ref.Normalize(y)
		least = min(least, float64(ref.Dot(x, y)))
	}
	return least
}

// Contract: a batch never changes a vector, in any family and precision.
func TestFamiliesBatchesChangeNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	eachWide(t, narrowPrecisions, func(t *testing.T, m *model.Model, p Precision, kernels *simd.Set) {
		checkBatches(t, openNarrow(t, m, 1, p, kernels), openNarrow(t, m, 3, p, kernels), 8, m.Config.Positions, seed)
	})
}

// Buffers and arguments are kept: a batch of a size seen before allocates
// nothing, be it shared by rows or by chunks of sequences.
func TestFamiliesAllocateNothing(t *testing.T) {
	eachWide(t, narrowPrecisions, func(t *testing.T, m *model.Model, p Precision, kernels *simd.Set) {
		d := openNarrow(t, m, 2, p, kernels)
		for _, n := range []int{1, 16} {
			b := golden.Batch(slices.Repeat([]golden.Case{{IDs: make([]int32, 64), Types: make([]int32, 64)}}, n)...)
			out := gpu.Output{Pooled: make([]float32, b.Len()*d.Dimensions()), Tokens: make([]float32, b.Tokens()*d.Dimensions())}
			run := func() {
				if err := d.Run(t.Context(), b, out); err != nil {
					t.Error(err)
				}
			}
			d.narrow.job = job{ctx: t.Context(), batch: b, out: out}
			d.narrow.cut(b.Offsets)
			for worker := range d.narrow.lanes { // whichever gets a chunk later
				d.narrow.runChunk(worker, 0)
			}
			require.Zero(t, testing.AllocsPerRun(3, run), "%d sequences", n)
		}
	})
}

// A device holds its weights once, in its precision's numbers: 1.2 times their
// size, all tables included.
func TestFamiliesMemory(t *testing.T) {
	for family := range wide {
		for p, size := range map[Precision]int{F32: 4, BF16: 2, Int8: 1} {
			t.Run(fmt.Sprintf("%s/%s", family, p), func(t *testing.T) {
				before := heap()
				m := newWide(family, small(20_000))
				limit := 1.2 * float64(size*parameters(m))
				d := openNarrow(t, m, 1, p, simd.Best())
				m = nil
				held := heap() - before
				runtime.KeepAlive(d)
				require.LessOrEqual(t, float64(held), limit, "%.3f times the weights", float64(held)/limit*1.2)
			})
		}
	}
}

func heap() int {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

func parameters(m *model.Model) int {
	e := &m.Encoder
	n := len(e.Word) + len(e.Position) + len(e.Type) + len(e.Relative)
	for _, l := range e.Layers {
		for _, d := range []model.Dense{l.Query, l.Key, l.Value, l.AttentionOut, l.Up, l.Gate, l.Down} {
			n += len(d.Weight) + len(d.Bias)
		}
	}
	return n
}
