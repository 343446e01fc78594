package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/index/late"
	"sluice/kernels/simd"
	"sluice/model"
)

const (
	candidates    = 30  // of a query
	queryTokens   = 13  // ten words
	passageTokens = 234 // 180 words
	pairTokens    = queryTokens + passageTokens + 3
)

// RerankOptions says what Rerank measures.
type RerankOptions struct {
	Model   string        // a cross-encoder's folder, or an encoder's, which is given a head
	Threads int           // of every contestant (default: all cores)
	Rounds  int           // turns of each contestant (default 5)
	Turn    time.Duration // of one turn, about (default 500 ms)
	Peers   *Peers        // nil: this program alone
	Log     io.Writer
}

func (o *RerankOptions) setDefaults() {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Turn <= 0 {
		o.Turn = 500 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
}

// Rerank measures how long it takes to score the 30 candidates, of 180 words
// each, of a query: a cross-encoder at every precision and late interaction,
// the peers in between, turn by turn. Tokenising is not part of it, nor is
// embedding the query. A model without a classifier is given a random one:
// its speed is a cross-encoder's, its scores mean nothing. The caller sets the
// file's Command.
//
// Figures of a contestant c (f32, bf16, int8, late, onnxruntime.f32, …):
// c.pairs_per_s and c.pairs_per_cpu_s, medians over the rounds; c.p50_ms and
// c.p95_ms of a query; but for late, c.logit_error_max, the largest difference
// to f32. ratio.a_to_b is the median of the rounds' ratios of pairs per second,
// with .min and .max; ratio.cpu.a_to_b that of pairs per CPU second.
func Rerank(ctx context.Context, o RerankOptions) (file figures.File, err error) {
	o.setDefaults()
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, folder, err := crossEncoder(o.Model, dir)
	if err != nil {
		return file, err
	}
	list, end, err := contestants(ctx, m, entry{model: folder, output: "logits", threads: o.Threads, peers: o.Peers})
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, end()) }()
	list = slices.Insert(list, len(precisions), contestant(newLateInteraction(m.Config.Hidden)))
	file = figures.New(ctx, simd.Best().Level)
	pairs := Even(candidates, min(pairTokens, m.MaxTokens))
	return file, o.measure(ctx, pairs.ids(m.Config.Vocabulary), list, file)
}

// crossEncoder loads the model in folder, or else makes one of it in dir.
func crossEncoder(folder, dir string) (*model.Model, string, error) {
	m, err := model.Load(folder)
	if err != nil || m.Classifier != nil {
		return m, folder, err
	}
	if err := withHead(folder, dir); err != nil {
		return nil, "", err
	}
	m, err = model.Load(dir)
	return m, dir, err
}

func (o *RerankOptions) measure(ctx context.Context, ids [][]int32, list []contestant, out figures.File) error {
	runs, err := o.calibrate(ctx, ids, list, out.Figures)
	if err != nil {
		return err
	}
	turns := make([][]turn, len(list))
	for range o.Rounds {
		for i, c := range list {
			t, err := c.run(ctx, ids, runs[i])
			if err != nil {
				return fmt.Errorf("measuring %s: %w", c.name(), err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	measured := make([]rates, len(list))
	for i, c := range list {
		measured[i] = o.report(c, turns[i], out)
	}
	ours := len(precisions) + 1
	for i := range ours {
		for j := ours; j < len(list); j++ {
			compareRates(list[i].name(), list[j].name(), measured[i], measured[j], out)
		}
	}
	compareRates("late", "int8", measured[ours-1], measured[ours-2], out)
	return nil
}

// calibrate chooses how many runs make a turn, and compares logits with the
// first contestant's.
func (o *RerankOptions) calibrate(ctx context.Context, ids [][]int32, list []contestant, out map[string]float64) (runs []int, err error) {
	var exact [][]float32
	for _, c := range list {
		t, err := c.run(ctx, ids, 1)
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", c.name(), err)
		}
		if exact == nil {
			exact = t.vectors
		}
		if t.vectors != nil {
			out[figureName(c)+".logit_error_max"] = farthest(exact, t.vectors)
		}
		runs = append(runs, min(max(int(o.Turn/max(t.wall, 1)), 1), 10_000))
	}
	return runs, nil
}

// farthest is the largest difference between first logits.
func farthest(a, b [][]float32) (d float64) {
	for i := range a {
		d = max(d, float64(a[i][0]-b[i][0]), float64(b[i][0]-a[i][0]))
	}
	return d
}

func (o *RerankOptions) report(c contestant, turns []turn, out figures.File) (r rates) {
	latency := load.NewHistogram()
	for _, t := range turns {
		for _, took := range t.times {
			latency.Record(took)
		}
		pairs := float64(candidates * len(t.times))
		r.wall = append(r.wall, pairs/t.wall.Seconds())
		r.cpu = append(r.cpu, pairs/max(t.cpu.Seconds(), 1e-9))
	}
	name := figureName(c)
	out.Median(name+".pairs_per_s", r.wall)
	out.Median(name+".pairs_per_cpu_s", r.cpu)
	out.Histograms[name] = latency.String()
	out.Figures[name+".p50_ms"], out.Figures[name+".p95_ms"] = milliseconds(latency.Quantile(.5)), milliseconds(latency.Quantile(.95))
	fmt.Fprintf(o.Log, "%-17s %10.0f pairs/s (%.0f to %.0f) %10.0f pairs/CPU s  p50 %.3f  p95 %.3f ms\n",
		c.name(), figures.MedianOf(r.wall), slices.Min(r.wall), slices.Max(r.wall), figures.MedianOf(r.cpu), out.Figures[name+".p50_ms"], out.Figures[name+".p95_ms"])
	return r
}

func compareRates(a, b string, x, y rates, out figures.File) {
	pair := a + "_to_" + b
	out.Spread("ratio."+pair, quotients(x.wall, y.wall))
	out.Median("ratio.cpu."+pair, quotients(x.cpu, y.cpu))
}

// lateInteraction scores token codes, as hybrid-late does.
type lateInteraction struct {
	coder    *late.Coder
	query    []float32 // token vectors
	special  []bool
	passages [][]byte
}

func newLateInteraction(dimensions int) *lateInteraction {
	r := rand.New(rand.NewPCG(3, 0))
	l := &lateInteraction{coder: late.NewCoder(late.Kind{Dimensions: dimensions, Bits: 1})}
	l.query, l.special = randomTokens(r, queryTokens, dimensions)
	for range candidates {
		vectors, special := randomTokens(r, passageTokens, dimensions)
		l.passages = append(l.passages, l.coder.Encode(vectors, special))
	}
	return l
}

func randomTokens(r *rand.Rand, n, dimensions int) (vectors []float32, special []bool) {
	vectors = make([]float32, n*dimensions)
	for i := range vectors {
		vectors[i] = float32(r.NormFloat64())
	}
	return vectors, make([]bool, n)
}

func (l *lateInteraction) name() string { return "late" }

// Close has nothing to close.
func (l *lateInteraction) Close() error { return nil }

// run scores its own passages, as many as there are ids, on one thread.
func (l *lateInteraction) run(_ context.Context, _ [][]int32, runs int) (turn, error) {
	t := turn{times: make([]time.Duration, runs)}
	wall, used := time.Now(), cpuTime()
	for i := range t.times {
		began := time.Now()
		query := l.coder.Query(l.query, l.special)
		for _, codes := range l.passages {
			if _, ok := query.Score(codes); !ok {
				return t, errors.New("the codes are not understood")
			}
		}
		t.times[i] = time.Since(began)
	}
	t.wall, t.cpu = time.Since(wall), cpuTime()-used
	return t, nil
}
