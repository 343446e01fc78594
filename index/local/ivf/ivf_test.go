package ivf

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/kernels/ref"
	"sluice/kernels/simd"
)

// vectors are rows of unit length around a few centres, as those of texts are.
type vectors struct {
	dims int
	data []float32
}

func (v *vectors) row(i int) []float32 { return v.data[i*v.dims : (i+1)*v.dims] }

func (v *vectors) rows() int { return len(v.data) / v.dims }

func clustered(seed uint64, rows, dims int) *vectors {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := &vectors{dims, make([]float32, rows*dims)}
	centres := make([]float32, max(rows/50, 1)*dims)
	for i := range centres {
		centres[i] = float32(rng.NormFloat64())
	}
	for i := range rows {
		centre := centres[rng.IntN(len(centres)/dims)*dims:]
		for d := range dims {
			v.row(i)[d] = centre[d] + 0.7*float32(rng.NormFloat64())
		}
		ref.Normalize(v.row(i))
	}
	return v
}

// query is near some row, and none of the rows.
func (v *vectors) query(rng *rand.Rand) []float32 {
	q := slices.Clone(v.row(rng.IntN(v.rows())))
	for d := range q {
		q[d] += float32(rng.NormFloat64()) / float32(math.Sqrt(float64(2*v.dims)))
	}
	ref.Normalize(q)
	return q
}

func build(t testing.TB, s *Space, v *vectors, lists int) *Index {
	t.Helper()
	x, err := s.Build(t.Context(), v.rows(), v.row, Options{Lists: lists, Threads: 2, Seed: 1, Owner: 7})
	require.NoError(t, err)
	return x
}

func bitsOf(rows int, has func(row int) bool) []uint64 {
	words := make([]uint64, (rows+63)/64)
	for row := range rows {
		if has(row) {
			words[row/64] |= 1 << (row % 64)
		}
	}
	return words
}

// best returns the k rows of greatest product among those given, ties by row.
func (v *vectors) best(q []float32, k int, rows []uint32) []uint32 {
	products := map[uint32]float32{}
	for _, row := range rows {
		products[row] = ref.Dot(q, v.row(int(row)))
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(products[b], products[a]), cmp.Compare(a, b))
	})
	return rows[:min(k, len(rows))]
}

func matching(words []uint64, live []uint64) (rows []uint32) {
	for row := range uint32(64 * len(words)) {
		if words[row/64]>>(row%64)&1 == 1 && (live == nil || live[row/64]>>(row%64)&1 == 1) {
			rows = append(rows, row)
		}
	}
	return rows
}

func everySpace(t *testing.T, dims int, check func(t *testing.T, s *Space)) {
	for _, set := range simd.Supported() {
		t.Run(set.Level, func(t *testing.T) { check(t, newSpace(dims, DefaultRecall, set)) })
	}
}

// TestExactWithoutLists: of what Search returns where it scores all allowed
// rows, the best are the best of all, whatever is allowed, dead or equal.
func TestExactWithoutLists(t *testing.T) {
	for _, dims := range []int{3, 64, 200} {
		everySpace(t, dims, func(t *testing.T, s *Space) {
			v := clustered(uint64(dims), 700, dims)
			copy(v.row(5), v.row(500)) // ties
			x := build(t, s, v, 0)
			rng := rand.New(rand.NewPCG(2, uint64(dims)))
			var q Query
			var memory Scratch
			for range 30 {
				share, query, k := rng.Float64(), v.query(rng), 1+rng.IntN(20)
				words := bitsOf(700, func(int) bool { return rng.Float64() < share })
				live := bitsOf(700, func(int) bool { return rng.Float64() < 0.9 })
				s.Prepare(&q, query)
				got := x.Search(&q, NewAllowed(words), live, k, float32(math.Inf(-1)), &memory)
				require.Subset(t, matching(words, live), got)
				want := v.best(query, k, matching(words, live))
				require.Equal(t, want, v.best(query, k, got))
				if len(want) == k { // rows below a floor may be left out, those at it not
					floor := ref.Dot(query, v.row(int(want[k/2])))
					got = x.Search(&q, NewAllowed(words), live, k, floor, &memory)
					require.Equal(t, want[:k/2+1], v.best(query, k/2+1, got))
				}
			}
		})
	}
}

// TestLists: lists find nearly all, only what is allowed and live, each row once.
func TestLists(t *testing.T) {
	const rows, dims, k = 30_000, 64, 10
	s := NewSpace(dims, DefaultRecall)
	v := clustered(1, rows, dims)
	x := build(t, s, v, Lists(rows))
	rng := rand.New(rand.NewPCG(3, 1))
	for name, filter := range map[string]func(row int) bool{
		"all":           func(int) bool { return true },
		"half":          func(int) bool { return rng.IntN(2) == 0 },
		"half of space": func(row int) bool { return v.row(row)[0] > -0.02 },
	} {
		words := bitsOf(rows, filter)
		live := bitsOf(rows, func(row int) bool { return row%10 != 0 })
		allowed := NewAllowed(words)
		require.Greater(t, float64(allowed.Len()), x.listsCost(allowed), name)
		var q Query
		var memory Scratch
		found := 0
		const queries = 30
		for range queries {
			query := v.query(rng)
			s.Prepare(&q, query)
			got := slices.Clone(x.Search(&q, allowed, live, k, float32(math.Inf(-1)), &memory))
			for _, row := range got {
				require.True(t, words[row/64]>>(row%64)&1 == 1 && row%10 != 0, name)
			}
			slices.Sort(got)
			require.Equal(t, slices.Compact(slices.Clone(got)), got, name)
			require.Less(t, len(got), 200, name)
			best := v.best(query, k, got)
			for _, row := range v.best(query, k, matching(words, live)) {
				if slices.Contains(best, row) {
					found++
				}
			}
		}
		require.Greater(t, float64(found)/(queries*k), 0.97, name)
		for range 10 { // far from everything
			query := v.query(rng)
			for d := range query {
				query[d] = -query[d]
			}
			s.Prepare(&q, query)
			got := x.Search(&q, allowed, live, k, float32(math.Inf(-1)), &memory)
			require.GreaterOrEqual(t, len(got), k, "%s: k rows exist", name)
		}
		require.Zero(t, slices.Max(memory.seen), "nothing is left for the next search")
		var fresh Scratch // where k rows elsewhere are nearer, lists end the search, not a look at all rows
		require.Empty(t, x.Search(&q, allowed, live, k, 2, &fresh), name)
		require.Less(t, cap(fresh.scores), batch, name)
	}
}

// TestRecall: what is wanted is found, and less is less work.
func TestRecall(t *testing.T) {
	const rows, dims, k, queries = 30_000, 64, 10, 40
	v := clustered(11, rows, dims)
	data := build(t, NewSpace(dims, DefaultRecall), v, Lists(rows)).Bytes()
	allowed := NewAllowed(bitsOf(rows, func(row int) bool { return row%5 != 0 }))
	before, work := 0.0, 0
	for _, recall := range []float64{0.9, 0.97, 0.995} {
		s := NewSpace(dims, recall)
		x, err := s.Open(data)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(12, 1))
		found, looked := 0, 0
		var q Query
		var memory Scratch
		for range queries {
			query := v.query(rng)
			s.Prepare(&q, query)
			got := v.best(query, k, x.Search(&q, allowed, nil, k, float32(math.Inf(-1)), &memory))
			looked += len(memory.chunks)
			for _, row := range v.best(query, k, matching(allowed.Words(rows), nil)) {
				if slices.Contains(got, row) {
					found++
				}
			}
		}
		share := float64(found) / (k * queries)
		require.Greater(t, share, recall-0.02)
		require.GreaterOrEqual(t, share, before)
		require.Greater(t, looked, work)
		before, work = share, looked
	}
}

// TestListsGiveUp: where estimates tell nothing apart, scoring all rows ends the search.
func TestListsGiveUp(t *testing.T) {
	const rows, dims = 30_000, 8
	v := &vectors{dims, make([]float32, rows*dims)}
	for i := range rows {
		v.row(i)[i%2] = 1
	}
	s := NewSpace(dims, DefaultRecall)
	x := build(t, s, v, 100)
	var q Query
	var memory Scratch
	s.Prepare(&q, []float32{1, 0, 0, 0, 0, 0, 0, 0})
	got := x.Search(&q, NewAllowed(bitsOf(rows, func(int) bool { return true })), nil, 10, float32(math.Inf(-1)), &memory)
	require.GreaterOrEqual(t, len(got), 10)
	for _, row := range v.best([]float32{1, 0, 0, 0, 0, 0, 0, 0}, 10, got) {
		require.Zero(t, row%2)
	}
}

// TestSameForAnyThreads: the training depends on the seed and the vectors alone.
func TestSameForAnyThreads(t *testing.T) {
	v := clustered(4, 3000, 64)
	s := NewSpace(64, DefaultRecall)
	build := func(threads int, seed uint64) []byte {
		x, err := s.Build(t.Context(), v.rows(), v.row, Options{Lists: 60, Threads: threads, Seed: seed})
		require.NoError(t, err)
		return x.Bytes()
	}
	require.Equal(t, build(1, 5), build(4, 5))
	require.NotEqual(t, build(1, 5), build(1, 6))
}

func TestEveryRowIsInItsLists(t *testing.T) {
	v := clustered(5, 2000, 64)
	x := build(t, NewSpace(64, DefaultRecall), v, 50)
	times := make([]int, v.rows())
	for _, id := range x.ids {
		if id != none {
			times[id]++
		}
	}
	require.GreaterOrEqual(t, slices.Min(times), 1)
	require.Equal(t, 2, slices.Max(times))
}

func TestBuildCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	v, calls := clustered(6, 2000, 64), 0
	_, err := NewSpace(64, DefaultRecall).Build(ctx, v.rows(), func(row int) []float32 {
		if calls++; calls == 100 {
			cancel()
		}
		return v.row(row)
	}, Options{Lists: 50, Threads: 1})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, calls, v.rows())
}

func TestBuildRefuses(t *testing.T) {
	v := clustered(6, 10, 64)
	for _, o := range []Options{{Lists: 11, Threads: 1}, {Lists: -1, Threads: 1}, {Lists: 2}} {
		_, err := NewSpace(64, DefaultRecall).Build(t.Context(), 10, v.row, o)
		require.Error(t, err)
	}
}

// TestDamage: every flipped byte and every cut is found.
func TestDamage(t *testing.T) {
	s, v := NewSpace(64, DefaultRecall), clustered(7, 40, 64)
	x := build(t, s, v, 5)
	again, err := s.Open(x.Bytes())
	require.NoError(t, err)
	require.Equal(t, x.shape, again.shape)
	require.Equal(t, uint32(7), again.Owner())
	data := slices.Clone(x.Bytes())
	for at := range data {
		data[at] ^= 0x40
		_, err := s.Open(data)
		require.Error(t, err, "byte %d", at)
		data[at] ^= 0x40
	}
	for size := range len(data) {
		_, err := s.Open(data[:size])
		require.ErrorIs(t, err, ErrDamaged)
	}
	data[8]++
	_, err = s.Open(data)
	require.ErrorIs(t, err, ErrNewer)
}

func TestSearchDoesNotAllocate(t *testing.T) {
	const rows, dims = 30_000, 64
	s, v := NewSpace(dims, DefaultRecall), clustered(8, rows, dims)
	listed := build(t, s, v, 400)
	few, many := NewAllowed(bitsOf(rows, func(row int) bool { return row%10 == 0 })), NewAllowed(bitsOf(rows, func(row int) bool { return row%10 != 0 }))
	var q Query
	var memory Scratch
	query := v.query(rand.New(rand.NewPCG(1, 1)))
	for _, a := range []*Allowed{few, many} {
		search := func() {
			s.Prepare(&q, query)
			listed.Search(&q, a, nil, 10, float32(math.Inf(-1)), &memory)
		}
		search()
		require.Zero(t, testing.AllocsPerRun(10, search))
	}
}

// TestEstimateIsUnbiased: over many rows the codes' errors cancel out, and they
// are as large as the bound that decides on scoring says.
func TestEstimateIsUnbiased(t *testing.T) {
	const dims, rows = 384, 4000
	s, v := NewSpace(dims, DefaultRecall), clustered(9, rows, dims)
	block := make([]byte, ref.CodeBlock(dims))
	var q Query
	query := v.row(0)
	s.Prepare(&q, query)
	q.encode()
	x, c := make([]float32, dims), make([]float32, dims)
	s.rotate(c, v.row(1))
	product, distance := ref.Dot(query, v.row(1)), 2-2*ref.Dot(query, v.row(1))
	var sum, square float64
	for row := range rows {
		s.rotate(x, v.row(row))
		encode(block, 3, x, c)
		estimate := ref.ScanBlock(q.values, block, q.code.Scale, q.shift, product)[3]
		residual := 2 - 2*ref.Dot(v.row(row), v.row(1))
		err := float64(estimate-ref.Dot(query, v.row(row))) / math.Sqrt(float64(distance*residual+1e-6))
		sum += err
		square += err * err
	}
	deviation := math.Sqrt(square / rows)
	require.InDelta(t, 0, sum/rows, 4*deviation/math.Sqrt(rows)+0.01)
	require.InDelta(t, 0.75/math.Sqrt(dims), deviation, 0.2/math.Sqrt(dims))
}

// FuzzOpen: damaged bytes with right checksums are refused or harmless.
func FuzzOpen(f *testing.F) {
	s, v := NewSpace(64, DefaultRecall), clustered(10, 40, 64)
	x, err := s.Build(f.Context(), v.rows(), v.row, Options{Lists: 5, Threads: 1})
	require.NoError(f, err)
	f.Add(x.Bytes(), 0, byte(0))
	f.Fuzz(func(t *testing.T, data []byte, at int, change byte) {
		data = slices.Clone(data)
		if at >= 0 && at < len(data) {
			data[at] ^= change
		}
		h, err := s.readHeader(data)
		if err != nil {
			return
		}
		s.view(data, h).seal()
		opened, err := s.Open(data)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		var q Query
		var memory Scratch
		s.Prepare(&q, v.row(0))
		opened.searchLists(&q, NewAllowed(bitsOf(opened.rows, func(int) bool { return true })), nil, 3, -1, &memory)
	})
}
