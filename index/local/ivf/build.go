package ivf

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"sluice/kernels/ref"
)

// Options say how Build builds.
type Options struct {
	Lists   int    // 0: none, so that every allowed row is scored
	Threads int    // at most; at least 1
	Seed    uint64 // of the training
	Owner   uint32 // kept, and told by Index.Owner
}

// Lists is the number of lists that suits so many rows: 4·√rows.
func Lists(rows int) int { return min(int(4*math.Sqrt(float64(rows))), rows) }

// spread weighs the second list's residual against being parallel to the first's.
const spread = 1.5

// builder is one run of Build.
type builder struct {
	space   *Space
	options Options
	rows    int
	vector  func(row int) []float32
}

// Build makes the index of rows vectors. vector is called by several
// goroutines; what it returns is only read until the next call.
func (s *Space) Build(ctx context.Context, rows int, vector func(row int) []float32, o Options) (*Index, error) {
	if rows < 1 || rows >= none || o.Lists < 0 || o.Lists > rows || o.Threads < 1 {
		return nil, fmt.Errorf("building vector codes: %d lists of %d rows with %d threads are impossible", o.Lists, rows, o.Threads)
	}
	b := &builder{space: s, options: o, rows: rows, vector: vector}
	x, err := b.build(ctx)
	if err != nil {
		return nil, fmt.Errorf("building vector codes: %w", err)
	}
	return x, nil
}

func (b *builder) build(ctx context.Context) (*Index, error) {
	h := shape{rows: b.rows, owner: b.options.Owner}
	var err error
	if h.step, h.longest, err = b.measure(ctx); err != nil {
		return nil, err
	}
	var lists assigned
	if b.options.Lists > 0 {
		if lists, err = b.assign(ctx); err != nil {
			return nil, err
		}
		h.lists, h.blocks = b.options.Lists, int(lists.starts[b.options.Lists])
		h.centroidStep = max(largest(lists.centroids), tiny) / 127
	}
	x := b.space.view(make([]byte, b.space.size(h)), h)
	if h.lists > 0 {
		x.setLists(&lists)
	}
	if x.worst, err = b.encodeRows(ctx, x, &lists); err != nil {
		return nil, err
	}
	x.seal()
	return x, nil
}

// worker is the memory of one goroutine of a build.
type worker struct {
	scoring
	rotated []float32 // a strip
}

// parallel calls do for strips of [0, n) on as many goroutines as are allowed.
func (b *builder) parallel(ctx context.Context, n int, do func(w *worker, lo, hi int)) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range b.options.Threads {
		group.Go(func() error {
			w := &worker{rotated: make([]float32, strip*b.space.padded)}
			for {
				lo := int(next.Add(strip)) - strip
				if lo >= n || ctx.Err() != nil {
					return ctx.Err()
				}
				do(w, lo, min(lo+strip, n))
			}
		})
	}
	return group.Wait()
}

// eachRotated calls do for every rotated row.
func (b *builder) eachRotated(ctx context.Context, do func(w *worker, row int, x []float32)) error {
	return b.parallel(ctx, b.rows, func(w *worker, lo, hi int) {
		x := w.rotated[:b.space.padded]
		for row := lo; row < hi; row++ {
			b.space.rotate(x, b.vector(row))
			do(w, row, x)
		}
	})
}

// measure returns the size of a byte's step with which no row is cut off, and
// the length of the longest row.
func (b *builder) measure(ctx context.Context) (step, longest float32, err error) {
	var most, square atomicMax
	err = b.eachRotated(ctx, func(_ *worker, _ int, x []float32) {
		most.raise(largest(x))
		square.raise(b.space.kernels.Dot(x, x))
	})
	return max(most.value(), tiny) / 127, float32(math.Sqrt(float64(square.value()))), err
}

// atomicMax is the greatest of numbers that are not negative: their bits are
// in their order.
type atomicMax struct{ bits atomic.Uint32 }

func (m *atomicMax) raise(v float32) {
	for now := m.bits.Load(); math.Float32bits(v) > now; now = m.bits.Load() {
		if m.bits.CompareAndSwap(now, math.Float32bits(v)) {
			return
		}
	}
}

func (m *atomicMax) value() float32 { return math.Float32frombits(m.bits.Load()) }

// encodeRows writes the bytes and codes of all rows, and returns the largest
// distance between a row and its bytes.
func (b *builder) encodeRows(ctx context.Context, x *Index, lists *assigned) (worst float32, err error) {
	var most atomicMax
	padded, block := b.space.padded, ref.CodeBlock(b.space.padded)
	err = b.eachRotated(ctx, func(_ *worker, row int, v []float32) {
		distance := toBytes(x.bytes[row*padded:][:padded], v, x.step)
		most.raise(float32(math.Sqrt(distance)))
		if x.lists == 0 {
			return
		}
		for i, list := range lists.of[row] {
			at := int(lists.places[row][i])
			x.ids[at] = uint32(row)
			encode(x.codes[at/ref.CodeLanes*block:][:block], at%ref.CodeLanes, v, lists.centroid(int(list), padded))
		}
	})
	return most.value(), err
}
