//go:build nvidia

package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"sluice/gpu/cuda"
	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/worker"
)

// Sizes is how much is run.
type Sizes struct {
	Tokens   int // of a batch
	Vectors  int // that a search is over, if there is memory for them
	Pairs    int // that are reranked
	Passages int // of late interaction
	Shapes   []Shape
	Time     time.Duration // of each throughput
	Repeats  int           // of each latency
}

// Full is for a GPU. Published figures are of such shapes.
var Full = Sizes{Tokens: 16 << 10, Vectors: 10_000_000, Pairs: 30, Passages: 512, Shapes: []Shape{MiniLM, BERTBase}, Time: 3 * time.Second, Repeats: 200}

// run collects figures, as it writes them out.
type run struct {
	sizes   Sizes
	device  *worker.Device
	program string // the worker's
	kernels *kernel.Set
	out     io.Writer
	figures map[string]float64
}

// Run measures the device, which is bound to the caller, and a worker of the
// program on it, and returns figures by their flat names. It is an error if a
// model's vectors, or what a worker finds, are not what the CPU says.
func Run(d *worker.Device, program string, s Sizes, out io.Writer) (map[string]float64, error) {
	kernels, err := kernel.Load()
	if err != nil {
		return nil, err
	}
	r := &run{s, d, program, kernels, out, map[string]float64{}}
	steps := []func() error{r.measureProducts, r.measureAttention, r.measureRows, r.measureSearch, r.measureModels, r.measureWorker}
	for _, step := range steps {
		if err := step(); err != nil {
			return r.figures, err
		}
	}
	return r.figures, kernels.Close()
}

func (r *run) figure(name string, value float64) {
	r.figures[name] = value
	fmt.Fprintf(r.out, "%-44s %12.4g\n", name, value)
}

// latencies is of do, again and again.
func (r *run) latencies(name string, do func() error) error {
	var took []float64
	for i := range warmUps + r.sizes.Repeats {
		began := time.Now()
		if err := do(); err != nil {
			return err
		}
		if i >= warmUps {
			took = append(took, 1000*time.Since(began).Seconds())
		}
	}
	slices.Sort(took)
	r.figure(name+".p50_ms", took[len(took)/2])
	r.figure(name+".p95_ms", took[len(took)*95/100])
	return nil
}

// measureWorker is of a process of its own, as the daemon has.
func (r *run) measureWorker() error {
	described, err := r.device.Describe()
	if err != nil {
		return err
	}
	s, stop, err := cuda.StartSearcher(context.Background(), r.program, described.Ordinal, slog.Default())
	if err != nil {
		return err
	}
	defer stop()
	return errors.Join(r.measureSearches(s), r.measureEven(s), r.measureMaxSim(s))
}
