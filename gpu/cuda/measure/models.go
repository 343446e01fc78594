//go:build nvidia

package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"sluice/gpu"
	"sluice/gpu/cpu"
	"sluice/gpu/cuda"
	"sluice/gpu/cuda/wire"
	"sluice/gpu/cuda/worker"
	"sluice/kernels/ref"
	"sluice/model"
)

// Shape is a model's, with the name that figures have.
type Shape struct {
	Name                                            string
	Hidden, Layers, Heads, Intermediate, Vocabulary int
}

// MiniLM and BERTBase are the shapes of all-MiniLM-L6-v2 and BERT-base.
var (
	MiniLM   = Shape{"minilm_l6", 384, 6, 12, 1536, 30522}
	BERTBase = Shape{"bert_base", 768, 12, 12, 3072, 30522}
)

// Model makes one of that shape, of random weights: they cost as much as others.
func (s Shape) Model(seed uint64) *model.Model {
	w := weights{rand.New(rand.NewPCG(seed, 0))}
	c := model.Config{
		Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, Intermediate: s.Intermediate, Vocabulary: s.Vocabulary,
		Positions: 512, Types: 2, Activation: model.GELU, Epsilon: 1e-12, Attention: slices.Repeat([]model.Attention{{}}, s.Layers),
	}
	e := model.Encoder{
		Word: w.numbers(c.Vocabulary*c.Hidden, 1), Position: w.numbers(c.Positions*c.Hidden, 0.3), Type: w.numbers(2*c.Hidden, 0.3), Norm: w.norm(c.Hidden),
	}
	for range c.Layers {
		e.Layers = append(e.Layers, model.Layer{
			Query: w.dense(c.Hidden, c.Hidden), Key: w.dense(c.Hidden, c.Hidden), Value: w.dense(c.Hidden, c.Hidden),
			AttentionOut: w.dense(c.Hidden, c.Hidden), AttentionNorm: w.norm(c.Hidden),
			Up: w.dense(c.Hidden, c.Intermediate), Down: w.dense(c.Intermediate, c.Hidden), OutputNorm: w.norm(c.Hidden),
		})
	}
	return &model.Model{
		Name: s.Name, Config: c, Encoder: e, Pooling: model.MeanPooling, MaxTokens: c.Positions,
		Classifier: &model.Classifier{
			Pooling: model.CLSPooling, Activation: model.Tanh, Dense: w.dense(c.Hidden, c.Hidden), Out: w.dense(c.Hidden, 1), Labels: []string{"score"},
		},
	}
}

type weights struct{ *rand.Rand }

func (w weights) numbers(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(w.NormFloat64() * scale)
	}
	return x
}

func (w weights) dense(in, out int) model.Dense {
	return model.Dense{Weight: w.numbers(in*out, 1/math.Sqrt(float64(in))), Bias: w.numbers(out, 0.1), In: in, Out: out}
}

func (w weights) norm(n int) model.Norm {
	gain := w.numbers(n, 0.1)
	for i := range gain {
		gain[i]++
	}
	return model.Norm{Gain: gain, Bias: w.numbers(n, 0.1)}
}

// flops is the operations of a sequence of n tokens.
func (s Shape) flops(n int) float64 {
	return float64(s.Layers) * float64(n) * (2*float64(s.Hidden)*float64(4*s.Hidden+2*s.Intermediate) + 4*float64(n)*float64(s.Hidden))
}

// texts is a batch of sequences of random ids.
func (s Shape) texts(rng *rand.Rand, lengths ...int) *wire.Run {
	r := &wire.Run{Want: wire.WantPooled}
	r.Batch.Reset()
	for _, n := range lengths {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = rng.Int32N(int32(s.Vocabulary))
		}
		r.Batch.Append(ids, make([]int32, n))
	}
	return r
}

// mixed are lengths of so many tokens together: most are short, some long.
func mixed(rng *rand.Rand, tokens int) (lengths []int) {
	for tokens > 0 {
		n := min(tokens, int(math.Exp2(3+5*rng.Float64()))) // 8 to 256
		lengths, tokens = append(lengths, n), tokens-n
	}
	return lengths
}

func (r *run) measureModels() error {
	for _, s := range r.sizes.Shapes {
		m := s.Model(1)
		kernels, err := r.chosen(s, m)
		if err != nil {
			return err
		}
		loaded, err := r.device.Load(m, kernels...)
		if err != nil {
			return err
		}
		for _, step := range []func(Shape, *worker.Model) error{r.measureLatency, r.measureGaps, r.measureRerank, r.measureThroughput} {
			err = errors.Join(err, step(s, loaded))
		}
		if err = errors.Join(err, r.compare(s, m, loaded), loaded.Close()); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// chosen are the kernels that a daemon would have the model's products multiplied
// by: the figures have their numbers, as 5 of gemm_5.
func (r *run) chosen(s Shape, m *model.Model) ([]wire.Tried, error) {
	described, err := r.device.Describe()
	if err != nil {
		return nil, err
	}
	best := cuda.FastestKernels(context.Background(), r.program, described.Ordinal, m.Config, r.sizes.Tokens, slog.Default())
	for _, b := range best {
		var number float64
		if _, err := fmt.Sscanf(b.Kernel, "gemm_%g", &number); err != nil {
			return nil, fmt.Errorf("the kernel %q has no number: %w", b.Kernel, err)
		}
		name := fmt.Sprintf("gemm.%s.%dx%d.rows%d", s.Name, b.In, b.Out, b.Rows)
		r.figure(name+".served_by", number)
		r.figure(name+".us", 1e6*b.Seconds)
	}
	return best, nil
}

// compare asks that vectors and logits are those of gpu/cpu in float32, as far as bfloat16 goes.
func (r *run) compare(s Shape, m *model.Model, loaded *worker.Model) error {
	slot, err := r.device.NewSlot()
	if err != nil {
		return err
	}
	texts := s.texts(rand.New(rand.NewPCG(2, 0)), 1, 7, 64, 65, 130)
	got, err := slot.Run(loaded, texts)
	if err != nil {
		return err
	}
	plain := cpu.New(m, 0)
	want := make([]float32, texts.Batch.Len()*s.Hidden)
	if err := plain.Run(context.Background(), &texts.Batch, gpu.Output{Pooled: want}); err != nil {
		return err
	}
	least := 1.0
	for i := range texts.Batch.Len() {
		least = min(least, float64(ref.Dot(want[i*s.Hidden:][:s.Hidden], got.Pooled[i*s.Hidden:][:s.Hidden])))
	}
	r.figure(s.Name+".least_cosine", least)
	if err := errors.Join(plain.Close(), slot.Close()); err != nil {
		return err
	}
	if !(least > 0.999) {
		return fmt.Errorf("a vector has a cosine of %v to that of the CPU", least)
	}
	return nil
}

func (r *run) measureLatency(s Shape, m *worker.Model) error {
	return r.measureRepeats(s.Name+".query", m, s.texts(rand.New(rand.NewPCG(3, 0)), 16))
}

const pairTokens = 180

func (r *run) measureRerank(s Shape, m *worker.Model) error {
	pairs := s.texts(rand.New(rand.NewPCG(4, 0)), slices.Repeat([]int{pairTokens}, r.sizes.Pairs)...)
	pairs.Want = wire.WantLogits
	return r.measureRepeats(fmt.Sprintf("%s.rerank%dx%d", s.Name, r.sizes.Pairs, pairTokens), m, pairs)
}

// measureRepeats is the time of one batch after the other, from and to the host.
func (r *run) measureRepeats(name string, m *worker.Model, batch *wire.Run) error {
	slot, err := r.device.NewSlot()
	if err != nil {
		return err
	}
	err = r.latencies(name, func() error {
		_, err := slot.Run(m, batch)
		return err
	})
	return errors.Join(err, slot.Close())
}

// measureThroughput has two slots take turns, as a worker has.
func (r *run) measureThroughput(s Shape, m *worker.Model) error {
	type count struct {
		tokens, flops float64
		err           error
	}
	results := make(chan count)
	began := time.Now()
	for i := range 2 {
		go func() {
			c := count{}
			c.err = r.repeat(s, m, uint64(5+i), began, &c.tokens, &c.flops)
			results <- c
		}()
	}
	a, b := <-results, <-results
	took := time.Since(began).Seconds()
	r.figure(s.Name+".tokens_per_s", (a.tokens+b.tokens)/took)
	r.figure(s.Name+".tflops", (a.flops+b.flops)/took/1e12)
	return errors.Join(a.err, b.err)
}

func (r *run) repeat(s Shape, m *worker.Model, seed uint64, began time.Time, tokens, flops *float64) error {
	if err := r.device.Bind(); err != nil {
		return err
	}
	slot, err := r.device.NewSlot()
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	lengths := mixed(rng, r.sizes.Tokens)
	batch := s.texts(rng, lengths...)
	for time.Since(began) < r.sizes.Time {
		if _, err := slot.Run(m, batch); err != nil {
			return err
		}
		for _, n := range lengths {
			*tokens, *flops = *tokens+float64(n), *flops+s.flops(n)
		}
	}
	return slot.Close()
}

func upload(m *memory, x []int32) (cu.DevicePtr, error) {
	p, err := m.take(4 * len(x))
	if err != nil {
		return 0, err
	}
	return p, cu.MemcpyHtoD(p, unsafe.Pointer(&x[0]), int64(4*len(x)))
}
