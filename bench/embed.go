package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"sluice/bench/figures"
	"sluice/gpu/cpu"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

// headline is the shape whose figures carry no shape in their names.
const headline = "32x32"

// EmbedOptions says what Embed measures.
type EmbedOptions struct {
	Model   string        // its folder
	Threads int           // of every contestant (default: all cores)
	Rounds  int           // turns of each contestant at each shape (default 7)
	Turn    time.Duration // of one turn, about (default 200 ms)
	Shapes  []Shape       // default: those of docs/measured.md
	Peers   *Peers        // nil: this program alone
	Goldens string        // folder with texts.jsonl and embeddings_256.f32le; empty: no cosines to them
	Log     io.Writer     // a line per shape and contestant
}

func (o *EmbedOptions) setDefaults() {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Rounds <= 0 {
		o.Rounds = 7
	}
	if o.Turn <= 0 {
		o.Turn = 200 * time.Millisecond
	}
	if o.Shapes == nil {
		o.Shapes = []Shape{Even(1, 16), Even(1, 128), Even(32, 32), Even(16, 128), Even(8, 256), Mixed(128)}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Embed measures the encoder at every precision, the peers in between, turn by
// turn: what disturbs the machine disturbs all. Tokenising is not part of it.
// The caller sets the file's Command.
//
// Figures of a contestant c (f32, bf16, int8, onnxruntime.f32, …) at shape s:
// c.s.tokens_per_s, c.s.tokens_per_cpu_s, c.s.ms (one batch), medians over the
// rounds; c.s.cosine_min to float32. ratio.a_to_b.s is the median of the
// rounds' ratios of tokens per second, with .min and .max, and ratio.cpu.a_to_b.s
// that of tokens per CPU second. For 32x32 the names without shape exist too.
func Embed(ctx context.Context, o EmbedOptions) (file figures.File, err error) {
	o.setDefaults()
	m, err := model.Load(o.Model)
	if err != nil {
		return file, err
	}
	contestants, end, err := contestants(ctx, m, entry{model: o.Model, output: "embedding", threads: o.Threads, peers: o.Peers})
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, end()) }()
	file = figures.New(ctx, simd.Best().Level)
	for _, shape := range o.Shapes {
		if err := o.measure(ctx, m, shape, contestants, file); err != nil {
			return file, err
		}
	}
	if o.Goldens != "" {
		err = goldenCosines(ctx, m, o.Goldens, contestants[:len(precisions)], file.Figures)
	}
	return file, err
}

var precisions = []cpu.Precision{cpu.F32, cpu.BF16, cpu.Int8}

// rates are a contestant's tokens per second and per CPU second, by round.
type rates struct{ wall, cpu []float64 }

func (o *EmbedOptions) measure(ctx context.Context, m *model.Model, shape Shape, contestants []contestant, out figures.File) error {
	ids := shape.ids(m.Config.Vocabulary)
	runs, err := o.calibrate(ctx, shape, ids, contestants, out.Figures)
	if err != nil {
		return err
	}
	measured := make([]rates, len(contestants))
	for range o.Rounds {
		for i, c := range contestants {
			t, err := c.run(ctx, ids, runs[i])
			if err != nil {
				return fmt.Errorf("measuring %s at %s: %w", c.name(), shape.Name, err)
			}
			tokens := float64(shape.Tokens() * runs[i])
			measured[i].wall = append(measured[i].wall, tokens/t.wall.Seconds())
			measured[i].cpu = append(measured[i].cpu, tokens/max(t.cpu.Seconds(), 1e-9))
		}
	}
	o.report(shape, contestants, measured, out)
	return nil
}

// calibrate chooses how many runs make a turn, and compares vectors with the
// first contestant's.
func (o *EmbedOptions) calibrate(ctx context.Context, shape Shape, ids [][]int32, contestants []contestant, out map[string]float64) ([]int, error) {
	var runs []int
	var exact [][]float32
	for _, c := range contestants {
		t, err := c.run(ctx, ids, 1)
		if err != nil {
			return nil, fmt.Errorf("running %s at %s: %w", c.name(), shape.Name, err)
		}
		if exact == nil {
			exact = t.vectors
		}
		cosines := compare(exact, t.vectors)
		record(out, figureName(c), shape, "cosine_min", cosines[0])
		runs = append(runs, min(max(int(o.Turn/max(t.wall, 1)), 1), 10_000))
	}
	return runs, nil
}

// compare returns the cosines of unit vectors, ascending.
func compare(a, b [][]float32) (cosines []float64) {
	for i := range a {
		cosines = append(cosines, float64(ref.Dot(a[i], b[i])))
	}
	slices.Sort(cosines)
	return cosines
}

func (o *EmbedOptions) report(shape Shape, contestants []contestant, measured []rates, out figures.File) {
	for i, c := range contestants {
		wall, perCPU := figures.MedianOf(measured[i].wall), figures.MedianOf(measured[i].cpu)
		recordRounds(out, figureName(c), shape, "tokens_per_s", measured[i].wall)
		recordRounds(out, figureName(c), shape, "tokens_per_cpu_s", measured[i].cpu)
		record(out.Figures, figureName(c), shape, "ms", float64(shape.Tokens())/wall*1000)
		fmt.Fprintf(o.Log, "%-8s %-17s %9.0f tokens/s (%.0f to %.0f) %9.0f tokens/CPU s\n",
			shape.Name, c.name(), wall, slices.Min(measured[i].wall), slices.Max(measured[i].wall), perCPU)
		for j := len(precisions); i < len(precisions) && j < len(contestants); j++ {
			pair := "ratio." + c.name() + "_to_" + contestants[j].name()
			recordRatios(out, pair, shape, measured[i].wall, measured[j].wall)
			recordRounds(out, strings.Replace(pair, "ratio.", "ratio.cpu.", 1), shape, "", quotients(measured[i].cpu, measured[j].cpu))
		}
	}
}

func recordRatios(out figures.File, pair string, shape Shape, a, b []float64) {
	q := quotients(a, b)
	recordRounds(out, pair, shape, "", q)
	record(out.Figures, pair, shape, "min", slices.Min(q))
	record(out.Figures, pair, shape, "max", slices.Max(q))
}

// recordRounds records the median of the rounds, and them.
func recordRounds(out figures.File, name string, shape Shape, what string, rounds []float64) {
	record(out.Figures, name, shape, what, out.Median(under(name, shape, what), rounds))
}

func under(name string, shape Shape, what string) string {
	if what != "" {
		what = "." + what
	}
	return name + "." + shape.Name + what
}

// record stores a figure under the shape's name, and without it for the
// headline.
func record(out map[string]float64, name string, shape Shape, what string, value float64) {
	out[under(name, shape, what)] = value
	if shape.Name == headline && what != "cosine_min" {
		out[strings.TrimSuffix(name+"."+what, ".")] = value
	}
}

// figureName is openvino.bf16 for openvino_bf16.
func figureName(c contestant) string { return strings.Replace(c.name(), "_", ".", 1) }

func quotients(a, b []float64) (q []float64) {
	for i := range a {
		q = append(q, a[i]/b[i])
	}
	return q
}
