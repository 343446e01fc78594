package ivf

import (
	"context"
	"math/rand/v2"
	"slices"

	"sluice/kernels/simd"
)

const (
	iterations   = 12
	samplePerCen = 32      // rows of the sample for each list
	maxSample    = 1 << 18 // rows
)

// scorer computes x·c − ½‖c‖² for rows and all centroids: the greater, the nearer.
type scorer struct {
	kernels *simd.Set
	padded  int
	lists   int
	weights *simd.Weights // where the CPU has instructions for it
	matrix  simd.Matrix
}

func (s *Space) newScorer(centroids []float32) *scorer {
	n := len(centroids) / s.padded
	bias := make([]float32, n)
	for i := range bias {
		c := centroids[i*s.padded:][:s.padded]
		bias[i] = -0.5 * s.kernels.Dot(c, c)
	}
	r := &scorer{kernels: s.kernels, padded: s.padded, lists: n}
	if s.kernels.Narrow() {
		r.weights = simd.PackInt8(centroids, bias, s.padded, false)
		return r
	}
	r.matrix.Reset(s.padded, n)
	r.matrix.SetTransposed(0, n, centroids, s.padded)
	r.matrix.SetBias(0, bias)
	return r
}

// strip is how many rows one goroutine scores at once.
const strip = 48

// scoring is the memory of one goroutine.
type scoring struct {
	rows    simd.Rows
	scratch simd.Scratch
	edge    simd.Edge
	buffer  []float32
	scores  []float32
}

// score returns the scores of some rows, row-major.
func (r *scorer) score(m *scoring, rows []float32) []float32 {
	n := len(rows) / r.padded
	m.scores = slices.Grow(m.scores[:0], n*r.lists)[:n*r.lists]
	if r.weights == nil {
		r.kernels.MatMul(m.scores, r.lists, rows, r.padded, n, &r.matrix, 0, r.matrix.Panels(), &m.edge)
		return m.scores
	}
	m.rows.Reset(simd.Int8, n, r.padded)
	m.buffer = slices.Grow(m.buffer[:0], r.padded)[:r.padded]
	r.kernels.SetRows(&m.rows, rows, 0, n, false, m.buffer)
	r.kernels.Product(m.scores, &m.rows, r.weights, 0, n, false, &m.scratch)
	return m.scores
}

// train returns the rotated centroids: Lloyd's algorithm on a sample, the same
// ones for the same vectors and seed, however many threads there are.
func (b *builder) train(ctx context.Context, lists int) ([]float32, error) {
	rng := rand.New(rand.NewPCG(b.options.Seed, 1))
	sample, err := b.sample(ctx, rng, min(b.rows, samplePerCen*lists, maxSample))
	if err != nil {
		return nil, err
	}
	padded := b.space.padded
	centroids := slices.Clone(sample[:lists*padded]) // the sample is in random order
	nearest := make([]uint32, len(sample)/padded)
	for range iterations {
		if err := b.assignSample(ctx, sample, centroids, nearest); err != nil {
			return nil, err
		}
		if err := b.recentre(ctx, rng, sample, centroids, nearest); err != nil {
			return nil, err
		}
	}
	return centroids, nil
}

// sample returns n rotated rows in random order.
func (b *builder) sample(ctx context.Context, rng *rand.Rand, n int) ([]float32, error) {
	chosen := rng.Perm(b.rows)[:n]
	rows := make([]float32, n*b.space.padded)
	err := b.parallel(ctx, n, func(_ *worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			b.space.rotate(rows[i*b.space.padded:(i+1)*b.space.padded], b.vector(chosen[i]))
		}
	})
	return rows, err
}

func (b *builder) assignSample(ctx context.Context, sample, centroids []float32, nearest []uint32) error {
	scorer := b.space.newScorer(centroids)
	padded := b.space.padded
	return b.parallel(ctx, len(nearest), func(w *worker, lo, hi int) {
		scores := scorer.score(&w.scoring, sample[lo*padded:hi*padded])
		for i := range hi - lo {
			nearest[lo+i] = greatest(scores[i*scorer.lists:][:scorer.lists])
		}
	})
}

func greatest(scores []float32) (at uint32) {
	best := scores[0]
	for i, v := range scores {
		if v > best {
			best, at = v, uint32(i)
		}
	}
	return at
}

// recentre moves every centroid to the mean of its rows, added in the order of
// the sample; one without rows moves to a random row.
func (b *builder) recentre(ctx context.Context, rng *rand.Rand, sample, centroids []float32, nearest []uint32) error {
	padded := b.space.padded
	members := membersOf(nearest, len(centroids)/padded)
	lost := make([]int, len(members))
	for i := range lost {
		if len(members[i]) == 0 {
			lost[i] = rng.IntN(len(nearest))
		}
	}
	return b.parallel(ctx, len(members), func(_ *worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			c := centroids[i*padded:][:padded]
			if len(members[i]) == 0 {
				copy(c, sample[lost[i]*padded:][:padded])
				continue
			}
			mean(c, sample, members[i])
		}
	})
}

// membersOf lists the rows of each list, ascending.
func membersOf(nearest []uint32, lists int) [][]uint32 {
	counts := make([]int, lists)
	for _, list := range nearest {
		counts[list]++
	}
	all := make([]uint32, len(nearest))
	members := make([][]uint32, lists)
	for i, n := range counts {
		members[i], all = all[:0:n], all[n:]
	}
	for row, list := range nearest {
		members[list] = append(members[list], uint32(row))
	}
	return members
}

func mean(c, rows []float32, members []uint32) {
	clear(c)
	for _, row := range members {
		for d, v := range rows[int(row)*len(c):][:len(c)] {
			c[d] += v
		}
	}
	for d := range c {
		c[d] /= float32(len(members))
	}
}
