//go:build nvidia

package measure

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"gorgonia.org/cu"

	"sluice/gpu/cuda"
	"sluice/kernels/ref"
)

const (
	searchDims  = 384
	searched    = 10               // rows that a search is for
	callers     = 64               // as many as one search of a worker takes
	compared    = 4                // of them, with the CPU: each costs it a pass over all rows
	copyingTime = 10 * time.Minute // of all rows to the device
)

// corpus is rows that a worker holds, and a query for each caller, with a bitmap
// of its own that admits every other row, by chance.
type corpus struct {
	rows    []float32
	queries [callers][]float32
	masks   [callers]bitmap
	held    *cuda.Rows
	found   [callers]cuda.Near // what each search finds
}

// bitmap is a cuda.Mask.
type bitmap struct{ words *[]uint64 }

func (b bitmap) Words() []uint64 { return *b.words }

func (b bitmap) admits(row int) bool { return (*b.words)[row/64]>>(row%64)&1 == 1 }

func (b bitmap) admitted() (n int) {
	for _, word := range *b.words {
		n += bits.OnesCount64(word)
	}
	return n
}

func newCorpus(rows int) *corpus {
	c := &corpus{rows: make([]float32, rows*searchDims)}
	var all sync.WaitGroup
	part := searchDims * (rows/runtime.GOMAXPROCS(0) + 1)
	for i, numbers := range slices.Collect(slices.Chunk(c.rows, part)) {
		all.Go(func() { randomize(rand.New(rand.NewPCG(6, uint64(i))), numbers) })
	}
	all.Wait()
	rng := rand.New(rand.NewPCG(7, 0))
	for i := range callers {
		words := make([]uint64, (rows+63)/64)
		for w := range words {
			words[w] = rng.Uint64()
		}
		words[len(words)-1] &= ^uint64(0) >> ((64 - rows%64) % 64)
		c.masks[i], c.queries[i] = bitmap{&words}, make([]float32, searchDims)
		randomize(rng, c.queries[i])
	}
	return c
}

func randomize(rng *rand.Rand, numbers []float32) {
	for i := range numbers {
		numbers[i] = rng.Float32() - 0.5
	}
}

// measureSearches is of searches by a worker, from and to the daemon's side of
// its socket: how fast rows are copied to it, one query after the other, and
// callers that ask at once.
func (r *run) measureSearches(s *cuda.Searcher) error {
	rows, err := r.corpusRows()
	if err != nil {
		return err
	}
	c := newCorpus(rows)
	began := time.Now()
	c.held = s.Hold(c.rows, searchDims)
	defer c.held.Close()
	if err := c.await(); err != nil {
		return fmt.Errorf("copying %d rows to the worker: %w", rows, err)
	}
	r.figure("worker.search.vectors", float64(rows))
	r.figure("worker.search.hold_gb_per_s", 2*float64(len(c.rows))/time.Since(began).Seconds()/1e9)
	if err := c.compare(); err != nil {
		return err
	}
	if err := r.latencies("worker.search.1", func() error { return c.search(0) }); err != nil {
		return err
	}
	rate, err := c.rate(r.sizes.Time)
	r.figure(fmt.Sprintf("worker.search.%d.queries_per_s", callers), rate)
	return err
}

// corpusRows is as many as the device and the host have room for.
func (r *run) corpusRows() (int, error) {
	free, _, err := cu.MemInfo()
	if err != nil {
		return 0, err
	}
	var host syscall.Sysinfo_t
	if err := syscall.Sysinfo(&host); err != nil {
		return 0, fmt.Errorf("asking for the host's memory: %w", err)
	}
	return min(r.sizes.Vectors, int(free)/2/(2*searchDims), int(host.Freeram)*int(host.Unit)/2/(4*searchDims)), nil
}

// await returns when the rows are on the device.
func (c *corpus) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), copyingTime)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.held.Search(ctx, c.queries[0], c.masks[0], searched)
		if !errors.Is(err, cuda.ErrNotHeld) {
			return err
		}
		select {
		case <-tick.C:
		case <-c.held.Ended():
			return err
		case <-ctx.Done():
			return err
		}
	}
}

func (c *corpus) search(i int) (err error) {
	c.found[i], err = c.held.Search(context.Background(), c.queries[i], c.masks[i], searched)
	return err
}

// together runs do for the first n callers at once.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// compare asks that all callers find, at once, what the CPU does.
func (c *corpus) compare() error {
	if err := together(callers, c.search); err != nil {
		return err
	}
	return together(compared, c.check)
}

// check finds an error if what was found is not, as far as its slack goes, the
// best of what the query may see.
func (c *corpus) check(i int) error {
	near, products := c.found[i], map[uint32]float32{}
	for n, row := range near.Rows {
		products[row] = near.Products[n]
	}
	if want := min(searched, c.masks[i].admitted()); want == 0 || len(products) != want {
		return fmt.Errorf("query %d: a worker finds rows %v, not %d", i, near.Rows, want)
	}
	least := near.Products[len(near.Products)-1]
	for row := range len(c.rows) / searchDims {
		if !c.masks[i].admits(row) {
			continue
		}
		product := ref.Dot(c.queries[i], c.rows[row*searchDims:][:searchDims])
		found, there := products[uint32(row)]
		delete(products, uint32(row))
		switch {
		case there && max(product-found, found-product) > near.Slack:
			return fmt.Errorf("query %d: row %d has the product %v, and a worker says %v", i, row, product, found)
		case !there && product > least+near.Slack:
			return fmt.Errorf("query %d: a worker does not find row %d", i, row)
		}
	}
	if len(products) > 0 {
		return fmt.Errorf("query %d: a worker finds rows that it may not see: %v", i, near.Rows)
	}
	return nil
}

// rate is the searches a second of all callers, each of which asks again and
// again, and finds the same.
func (c *corpus) rate(long time.Duration) (float64, error) {
	var count [callers]int
	began := time.Now()
	err := together(callers, func(i int) error {
		for first := c.found[i].Rows; time.Since(began) < long || count[i] == 0; count[i]++ {
			if err := c.search(i); err != nil {
				return err
			}
			if !slices.Equal(first, c.found[i].Rows) {
				return fmt.Errorf("query %d: a worker finds other rows than before", i)
			}
		}
		return nil
	})
	sum := 0
	for _, n := range count {
		sum += n
	}
	return float64(sum) / time.Since(began).Seconds(), err
}
