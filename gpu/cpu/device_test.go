package cpu

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/gpu"
	"sluice/gpu/golden"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
	"sluice/model/tokenizer"
)

// Contract: a batch never changes a number, not in a single bit, in any family,
// on any set of kernels and with any number of workers.
func TestBatchesChangeNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for _, name := range []string{"bert_gelu_tanh_h48", "distilbert", "roberta", "mpnet", "modernbert_seqcls_mean", "nomic_bert", "gte"} {
		m, err := model.Load(filepath.Join(golden.Dir, name))
		require.NoError(t, err)
		for _, kernels := range simd.Supported() {
			t.Run(name+"/"+kernels.Level, func(t *testing.T) {
				one, many := newDevice(m, 1, kernels), newDevice(m, 3, kernels)
				defer one.Close()
				defer many.Close()
				checkBatches(t, one, many, 12, min(100, m.Config.Positions), seed)
			})
		}
	}
}

func randomCases(r *rand.Rand, n int, c model.Config) []golden.Case {
	cases := make([]golden.Case, n)
	for i := range cases {
		for range 1 + r.IntN(c.Positions) {
			cases[i].IDs = append(cases[i].IDs, int32(r.IntN(c.Vocabulary)))
			cases[i].Types = append(cases[i].Types, int32(r.IntN(max(c.Types, 1))))
		}
	}
	return cases
}

func TestAttentionIsTheReferences(t *testing.T) {
	for _, shape := range []struct{ heads, size int }{{1, 8}, {3, 32}, {2, 64}, {2, 33}} {
		for _, kernels := range simd.Supported() {
			t.Run(fmt.Sprintf("%dx%d/%s", shape.heads, shape.size, kernels.Level), func(t *testing.T) {
				hidden := shape.heads * shape.size
				m := &model.Model{Config: model.Config{Hidden: hidden, Heads: shape.heads, Intermediate: 1, Positions: 200}}
				d := newDevice(m, 2, kernels)
				defer d.Close()
				offsets := []int{0, 1, 48, 49 + 48, 97 + 150}
				tokens := offsets[len(offsets)-1]
				d.ws.resize(tokens, m.Config)
				r := rand.New(rand.NewPCG(5, 5))
				for i := range d.ws.qkv {
					d.ws.qkv[i] = float32(r.NormFloat64())
				}
				d.attend(&layer{}, offsets)
				want := make([]float32, tokens*hidden)
				ref.Attention(want, d.ws.qkv, offsets, shape.heads, shape.size)
				golden.RequireNear(t, want, d.ws.context, 3e-6, "attention")
			})
		}
	}
}

// attentionCase is attention over sequences of random queries, keys and values.
type attentionCase struct {
	model.Attention
	buckets int
	offsets []int
}

func TestAttentionOfEveryKind(t *testing.T) {
	offsets := []int{0, 1, 60, 60 + 97, 60 + 97 + 180}
	for name, c := range map[string]attentionCase{
		"window":          {model.Attention{Window: 8}, 0, offsets},
		"wide window":     {model.Attention{Window: 64}, 0, offsets},
		"widest window":   {model.Attention{Window: 500}, 0, offsets},
		"rope":            {model.Attention{Theta: 10000, Stretch: 1.5}, 0, offsets},
		"rope and window": {model.Attention{Theta: 160000, Window: 20}, 0, offsets},
		"relative":        {model.Attention{}, 32, offsets},
		"all":             {model.Attention{Theta: 1000, Window: 33}, 32, offsets},
	} {
		for _, kernels := range simd.Supported() {
			t.Run(name+"/"+kernels.Level, func(t *testing.T) { c.check(t, kernels) })
		}
	}
}

func (c attentionCase) check(t *testing.T, kernels *simd.Set) {
	const heads, size, hidden = 2, 34, 68
	r := rand.New(rand.NewPCG(6, 6))
	m := &model.Model{Config: model.Config{Hidden: hidden, Heads: heads, Intermediate: 1, Positions: 200, Buckets: c.buckets,
		Layers: 1, Attention: []model.Attention{c.Attention}}}
	m.Encoder.Layers = make([]model.Layer, 1)
	for _, d := range []*model.Dense{&m.Encoder.Layers[0].Query, &m.Encoder.Layers[0].AttentionOut, &m.Encoder.Layers[0].Up, &m.Encoder.Layers[0].Down} {
		*d = model.Dense{In: 1, Out: 1, Weight: []float32{1}, Bias: []float32{0}}
	}
	for range c.buckets * heads {
		m.Encoder.Relative = append(m.Encoder.Relative, float32(r.NormFloat64()))
	}
	d := newDevice(m, 2, kernels)
	defer d.Close()
	d.ws.resize(c.offsets[len(c.offsets)-1], m.Config)
	for i := range d.ws.qkv {
		d.ws.qkv[i] = float32(r.NormFloat64())
	}
	qkv := slices.Clone(d.ws.qkv)
	d.attend(d.layers[0], c.offsets)
	for s := range len(c.offsets) - 1 {
		for head := range heads {
			c.checkHead(t, m, qkv, d.ws.context, c.offsets[s], c.offsets[s+1], head)
		}
	}
}

// checkHead computes the head in double precision from the definitions.
func (c attentionCase) checkHead(t *testing.T, m *model.Model, qkv, got []float32, from, to, head int) {
	t.Helper()
	hidden, size := m.Config.Hidden, m.Config.HeadSize()
	var parts [3][][]float64
	for which := range parts {
		for token := range to - from {
			x := widen(qkv[(from+token)*3*hidden+which*hidden+head*size:][:size])
			if which < 2 && c.Theta > 0 {
				c.turn(x, token)
			}
			parts[which] = append(parts[which], x)
		}
	}
	for i := range to - from {
		sum, out := 0.0, make([]float64, size)
		for j := range to - from {
			if c.Window > 0 && max(i-j, j-i) > c.Window {
				continue
			}
			p := math.Exp(dot(parts[0][i], parts[1][j])/math.Sqrt(float64(size)) + c.bias(m, j-i, head))
			sum += p
			for d, v := range parts[2][j] {
				out[d] += p * v
			}
		}
		for d := range out {
			if v := float64(got[(from+i)*hidden+head*size+d]); !(math.Abs(out[d]/sum-v) <= 5e-6) {
				t.Fatalf("token %d of %d, head %d: element %d is %v, want %v", i, to-from, head, d, v, out[d]/sum)
			}
		}
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func (c attentionCase) bias(m *model.Model, distance, head int) float64 {
	if c.buckets == 0 {
		return 0
	}
	return float64(m.Encoder.Relative[ref.RelativeBucket(distance, c.buckets)*m.Config.Heads+head])
}

// turn rotates a head's vector for its position.
func (c attentionCase) turn(x []float64, position int) {
	half, stretch := len(x)/2, max(c.Stretch, 1)
	for k := range half {
		sin, cos := math.Sincos(float64(position) / stretch * math.Pow(c.Theta, -float64(k)/float64(half)))
		x[k], x[k+half] = x[k]*cos-x[k+half]*sin, x[k+half]*cos+x[k]*sin
	}
}

// RoBERTa's table has rows that no sequence reaches: 64 of 66, as 512 of 514.
func TestPositionLimits(t *testing.T) {
	for name, limit := range map[string]int{"bert": 64, "distilbert": 64, "roberta": 64, "mpnet": 200, "modernbert": 256, "nomic_bert": 128} {
		d := openDevice(t, name, model.MeanPooling, simd.Best())
		run := func(n int) error {
			ids := slices.Repeat([]int32{5}, n)
			return d.Run(t.Context(), golden.Batch(golden.Case{IDs: ids, Types: make([]int32, n)}), gpu.Output{Pooled: make([]float32, 32)})
		}
		require.NoError(t, run(limit), name)
		require.ErrorIs(t, run(limit+1), gpu.ErrInput, name)
	}
}

// Tokenizers give type ids to models that have no use for them.
func TestTypesThatMakeNoDifference(t *testing.T) {
	for _, name := range []string{"distilbert", "roberta", "modernbert", "gte"} {
		d := openDevice(t, name, model.MeanPooling, simd.Best())
		require.Equal(t, embed(t, d, golden.Case{IDs: []int32{5, 6, 7}, Types: []int32{0, 0, 0}}), embed(t, d, golden.Case{IDs: []int32{5, 6, 7}, Types: []int32{0, 1, 1}}), name)
	}
	d := openDevice(t, "nomic_bert", model.MeanPooling, simd.Best())
	require.NotEqual(t, embed(t, d, golden.Case{IDs: []int32{5, 6, 7}, Types: []int32{0, 0, 0}}), embed(t, d, golden.Case{IDs: []int32{5, 6, 7}, Types: []int32{0, 1, 1}}))
}

// Pooled vectors pass the projections before they are normalised.
func TestProjections(t *testing.T) {
	m, err := model.Load(filepath.Join(golden.Dir, "bert"))
	require.NoError(t, err)
	c := golden.Cases(t, "bert")[3]
	m.Pooling = model.LastPooling
	plain := newDevice(m, 1, simd.Best())
	defer plain.Close()
	tokens := make([]float32, len(c.IDs)*32)
	require.NoError(t, plain.Run(t.Context(), golden.Batch(c), gpu.Output{Tokens: tokens}))
	r := rand.New(rand.NewPCG(9, 9))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	first := model.Dense{Weight: random(40 * 32), Bias: random(40), In: 32, Out: 40}
	second := model.Dense{Weight: random(7 * 40), Bias: random(7), In: 40, Out: 7}
	m.Projections = []model.Projection{{Dense: first, Activation: model.Tanh}, {Dense: second, Activation: model.Identity}}
	want, middle := make([]float32, 7), make([]float32, 40)
	ref.Linear(middle, tokens[len(tokens)-32:], first.Weight, first.Bias, 32, 40)
	ref.Tanh(middle)
	ref.Linear(want, middle, second.Weight, second.Bias, 40, 7)
	ref.Normalize(want)
	for _, p := range []Precision{F32, BF16} {
		d := newPrecision(m, 2, p, simd.Best())
		defer d.Close()
		require.Equal(t, 7, d.Dimensions())
		limit := map[Precision]float64{F32: 1e-6, BF16: 0.1}[p]
		golden.RequireNear(t, want, embed(t, d, c), limit, string(p))
		// Token vectors stay what the encoder gave.
		own := make([]float32, len(tokens))
		require.NoError(t, d.Run(t.Context(), golden.Batch(c), gpu.Output{Tokens: own}))
		golden.RequireNear(t, tokens, own, map[Precision]float64{F32: 0, BF16: 0.1}[p], "token vectors")
	}
}

func TestBadBatches(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	long := golden.Case{IDs: make([]int32, 65), Types: make([]int32, 65)}
	for name, b := range map[string]*gpu.Batch{
		"empty sequence": golden.Batch(golden.Case{}),
		"too long":       golden.Batch(long),
		"id too large":   golden.Batch(golden.Case{IDs: []int32{1000}, Types: []int32{0}}),
		"negative id":    golden.Batch(golden.Case{IDs: []int32{-1}, Types: []int32{0}}),
		"type too large": golden.Batch(golden.Case{IDs: []int32{1}, Types: []int32{2}}),
		"types missing":  golden.Batch(golden.Case{IDs: []int32{1}, Types: nil}),
		"offsets short":  {IDs: []int32{1, 2}, Types: []int32{0, 0}, Offsets: []int{0, 1}},
		"backwards":      {IDs: []int32{1, 2}, Types: []int32{0, 0}, Offsets: []int{0, 2, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, d.Run(t.Context(), b, gpu.Output{Pooled: make([]float32, b.Len()*32)}), gpu.ErrInput)
		})
	}
	good := golden.Batch(golden.Case{IDs: []int32{1}, Types: []int32{0}})
	require.ErrorIs(t, d.Run(t.Context(), good, gpu.Output{Pooled: make([]float32, 31)}), gpu.ErrInput)
	require.NoError(t, d.Run(t.Context(), good, gpu.Output{Pooled: make([]float32, 32)}))
	require.NoError(t, d.Run(t.Context(), golden.Batch(), gpu.Output{}))
	require.ErrorIs(t, d.Run(t.Context(), good, gpu.Output{Tokens: make([]float32, 33)}), gpu.ErrInput)
	require.ErrorContains(t, d.Run(t.Context(), good, gpu.Output{Logits: make([]float32, 1)}), "classification head")
}

func TestCancelledAndClosed(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	b, dst := golden.Batch(golden.Case{IDs: []int32{1}, Types: []int32{0}}), make([]float32, 32)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Run(ctx, b, gpu.Output{Pooled: dst}), context.Canceled)
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Run(t.Context(), b, gpu.Output{Pooled: dst}), ErrClosed)
	require.NoError(t, d.Close())
}

func TestConcurrentBatches(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	cases := golden.Cases(t, "bert")
	want := embed(t, d, cases...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dst := make([]float32, len(want))
			if err := d.Run(t.Context(), golden.Batch(cases...), gpu.Output{Pooled: dst}); err != nil {
				t.Error(err)
			}
			for i := range dst {
				if dst[i] != want[i] {
					t.Errorf("element %d is %v, want %v", i, dst[i], want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// Buffers are kept: what a batch allocates does not grow with its tokens.
func TestSteadyStateAllocations(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	b := golden.Batch(golden.Cases(t, "bert")...)
	dst := make([]float32, b.Len()*32)
	allocations := testing.AllocsPerRun(20, func() {
		if err := d.Run(t.Context(), b, gpu.Output{Pooled: dst}); err != nil {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, allocations, float64(8*len(d.layers)), "one closure per stage, and no buffer")
}

func TestTeamDoesEveryTaskOnce(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		team := newTeam(size)
		for _, tasks := range []int{0, 1, 2, 7, 1000} {
			done := make([]atomic.Int32, tasks)
			busy := make([]atomic.Bool, size)
			team.run(tasks, func(worker, task int) {
				if busy[worker].Swap(true) {
					t.Errorf("worker %d runs two tasks", worker)
				}
				done[task].Add(1)
				busy[worker].Store(false)
			})
			for i := range done {
				require.EqualValues(t, 1, done[i].Load(), "task %d of %d, team of %d", i, tasks, size)
			}
		}
		team.close()
	}
}

// A panic reaches the caller from whichever goroutine, and the team goes on.
func TestTeamPanics(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		team := newTeam(size)
		for range 20 {
			func() {
				defer func() { require.Contains(t, recover(), "task 3") }()
				team.run(10, func(_, task int) {
					if task == 3 {
						panic("task 3")
					}
				})
				t.Error("no panic")
			}()
			var done atomic.Int32
			team.run(10, func(int, int) { done.Add(1) })
			require.EqualValues(t, 10, done.Load())
		}
		team.close()
	}
}

// From text to vector, through the scheduler.
func TestEndToEnd(t *testing.T) {
	const name = "bert_e2e_wordpiece_cased"
	s, err := Open(F32, gpu.Options{BatchTokens: 40}, filepath.Join(golden.Dir, name))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(t.Context())) }()
	data, err := os.ReadFile(filepath.Join(golden.Dir, name, "cases.json"))
	require.NoError(t, err)
	var file struct{ Cases []struct{ Text string } }
	require.NoError(t, json.Unmarshal(data, &file))
	want := golden.Read(t, filepath.Join(golden.Dir, name, "expected.safetensors"))
	var texts []string
	for _, c := range file.Cases {
		require.NotContains(t, c.Text, "[SEP]")
		texts = append(texts, c.Text)
	}
	got, err := s.Embed(t.Context(), gpu.Request{Texts: texts})
	require.NoError(t, err)
	for i := range texts {
		golden.RequireNear(t, want.Tensor(fmt.Sprintf("case%d.mean_normalized", i), 32), got[i].Vector, golden.Tolerance, texts[i])
	}
	// A separator in a text is text.
	quoted, err := s.Embed(t.Context(), gpu.Request{Texts: []string{"a [SEP] b", "a [SEP"}})
	require.NoError(t, err)
	require.Greater(t, quoted[0].Tokens, 5)
}

// Contract: vectors, pooled and token by token, are the same in every bit
// whatever runs beside them, in whatever order, on however many devices.
func TestSchedulingChangesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	m, err := model.Load(filepath.Join(golden.Dir, "bert_e2e_wordpiece_cased"))
	require.NoError(t, err)
	tok, err := tokenizer.Load(m.Tokenizer)
	require.NoError(t, err)
	texts := make([]string, 40)
	for i := range texts {
		texts[i] = strings.Repeat("the end of a ", i%7) + strings.Repeat("x", i)
	}
	var want []gpu.Embedding
	for _, o := range []struct {
		tokens  int
		workers []int
	}{{1, []int{1}}, {64, []int{3}}, {1024, []int{2, 1}}} {
		v := gpu.Served{Model: m, Tokenizer: tok}
		for _, workers := range o.workers {
			v.Devices = append(v.Devices, New(m, workers))
		}
		s, err := gpu.NewScheduler(gpu.Options{BatchTokens: o.tokens}, v)
		require.NoError(t, err)
		if want == nil {
			want, err = s.Embed(t.Context(), gpu.Request{Texts: texts, TokenVectors: true})
			require.NoError(t, err)
			require.Len(t, want[5].TokenVectors, want[5].Tokens*s.Info().Dimensions)
		}
		var calls sync.WaitGroup
		for round := range uint64(6) {
			calls.Go(func() {
				r := rand.New(rand.NewPCG(seed, round))
				order := r.Perm(len(texts))[:1+r.IntN(len(texts))]
				request := gpu.Request{Priority: gpu.Priority(round % 2), TokenVectors: round%3 > 0}
				for _, i := range order {
					request.Texts = append(request.Texts, texts[i])
				}
				got, err := s.Embed(context.Background(), request)
				if err != nil {
					t.Error(err)
					return
				}
				for at, i := range order {
					same := slices.Equal(want[i].Vector, got[at].Vector)
					if request.TokenVectors {
						same = same && slices.Equal(want[i].TokenVectors, got[at].TokenVectors)
					}
					if !same || want[i].Tokens != got[at].Tokens {
						t.Errorf("text %d differs in round %d of %v, seed %d", i, round, o, seed)
					}
				}
			})
		}
		calls.Wait()
		require.NoError(t, s.Close(t.Context()))
	}
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(F32, gpu.Options{}, filepath.Join(golden.Dir, "bert"))
	require.ErrorIs(t, err, os.ErrNotExist, "it has no tokenizer")
	_, err = Open(F32, gpu.Options{}, t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.True(t, strings.Contains(err.Error(), "config.json"), err)
}
