//go:build nvidia

package measure

import (
	"fmt"
	"io"
	"time"

	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/worker"
)

// Sizes is how much is run.
type Sizes struct {
	Tokens  int // of a batch
	Vectors int // that a search is over, if there is memory for them
	Shapes  []Shape
	Time    time.Duration // of each throughput
	Repeats int           // of each latency
}

// Full is for a GPU. Published figures are of such shapes.
var Full = Sizes{Tokens: 16 << 10, Vectors: 10_000_000, Shapes: []Shape{MiniLM, BERTBase}, Time: 3 * time.Second, Repeats: 200}

// run collects figures, as it writes them out.
type run struct {
	sizes   Sizes
	device  *worker.Device
	kernels *kernel.Set
	out     io.Writer
	figures map[string]float64
}

// Run measures the device, which is bound to the caller, and returns figures by
// their flat names. It is an error if a model's vectors are not where they ought to be.
func Run(d *worker.Device, s Sizes, out io.Writer) (map[string]float64, error) {
	kernels, err := kernel.Load()
	if err != nil {
		return nil, err
	}
	r := &run{s, d, kernels, out, map[string]float64{}}
	for _, step := range []func() error{r.measureProducts, r.measureAttention, r.measureRows, r.measureSearch, r.measureModels} {
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
