package cpu

import (
	"context"
	"encoding/json"
	"fmt"
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
		m, err := model.Load(filepath.Join(modelsDir, name))
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

func randomCases(r *rand.Rand, n int, c model.Config) []goldenCase {
	cases := make([]goldenCase, n)
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
				requireNear(t, want, d.ws.context, 3e-6, "attention")
			})
		}
	}
}

func TestBadBatches(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	long := goldenCase{IDs: make([]int32, 65), Types: make([]int32, 65)}
	for name, b := range map[string]*gpu.Batch{
		"empty sequence": batchOf(goldenCase{}),
		"too long":       batchOf(long),
		"id too large":   batchOf(goldenCase{[]int32{1000}, []int32{0}}),
		"negative id":    batchOf(goldenCase{[]int32{-1}, []int32{0}}),
		"type too large": batchOf(goldenCase{[]int32{1}, []int32{2}}),
		"types missing":  batchOf(goldenCase{[]int32{1}, nil}),
		"offsets short":  {IDs: []int32{1, 2}, Types: []int32{0, 0}, Offsets: []int{0, 1}},
		"backwards":      {IDs: []int32{1, 2}, Types: []int32{0, 0}, Offsets: []int{0, 2, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, d.Run(t.Context(), b, gpu.Output{Pooled: make([]float32, b.Len()*32)}), ErrInput)
		})
	}
	good := batchOf(goldenCase{[]int32{1}, []int32{0}})
	require.ErrorIs(t, d.Run(t.Context(), good, gpu.Output{Pooled: make([]float32, 31)}), ErrInput)
	require.NoError(t, d.Run(t.Context(), good, gpu.Output{Pooled: make([]float32, 32)}))
	require.NoError(t, d.Run(t.Context(), batchOf(), gpu.Output{}))
	require.ErrorIs(t, d.Run(t.Context(), good, gpu.Output{Tokens: make([]float32, 33)}), ErrInput)
	require.ErrorContains(t, d.Run(t.Context(), good, gpu.Output{Logits: make([]float32, 1)}), "classification head")
}

func TestCancelledAndClosed(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	b, dst := batchOf(goldenCase{[]int32{1}, []int32{0}}), make([]float32, 32)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Run(ctx, b, gpu.Output{Pooled: dst}), context.Canceled)
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Run(t.Context(), b, gpu.Output{Pooled: dst}), ErrClosed)
	require.NoError(t, d.Close())
}

func TestConcurrentBatches(t *testing.T) {
	d := openDevice(t, "bert", model.MeanPooling, simd.Best())
	cases := readCases(t, "bert")
	want := embed(t, d, cases...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dst := make([]float32, len(want))
			if err := d.Run(t.Context(), batchOf(cases...), gpu.Output{Pooled: dst}); err != nil {
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
	b := batchOf(readCases(t, "bert")...)
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
	s, err := Open(filepath.Join(modelsDir, name), gpu.Options{BatchTokens: 40})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(t.Context())) }()
	data, err := os.ReadFile(filepath.Join(modelsDir, name, "cases.json"))
	require.NoError(t, err)
	var file struct{ Cases []struct{ Text string } }
	require.NoError(t, json.Unmarshal(data, &file))
	want := readExpectation(t, filepath.Join(modelsDir, name, "expected.safetensors"))
	var texts []string
	for _, c := range file.Cases {
		require.NotContains(t, c.Text, "[SEP]")
		texts = append(texts, c.Text)
	}
	got, err := s.Embed(t.Context(), gpu.Request{Texts: texts})
	require.NoError(t, err)
	for i := range texts {
		requireNear(t, want.tensor(fmt.Sprintf("case%d.mean_normalized", i), 32), got[i].Vector, tolerance, texts[i])
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
	m, err := model.Load(filepath.Join(modelsDir, "bert_e2e_wordpiece_cased"))
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
	_, err := Open(filepath.Join(modelsDir, "bert"), gpu.Options{})
	require.ErrorIs(t, err, os.ErrNotExist, "it has no tokenizer")
	_, err = Open(t.TempDir(), gpu.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.True(t, strings.Contains(err.Error(), "config.json"), err)
}
