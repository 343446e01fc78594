//go:build nvidia

package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// half is the bits of a small whole number as an IEEE half.
func half(n int) uint16 {
	if n == 0 {
		return 0
	}
	sign := uint16(0)
	if n < 0 {
		sign, n = 0x8000, -n
	}
	exponent := 0
	for n>>(exponent+1) > 0 {
		exponent++
	}
	return sign | uint16(exponent+15)<<10 | uint16(n<<10>>exponent&1023)
}

// corpus is vectors of small whole numbers, whose products are exact in any
// order, so that results can be asked for to the bit, equal scores included.
type corpus struct {
	rows, queries [][]int
	allowed       [][]uint32 // by query
	scale         func(row int) float32
}

func (b *bench) corpus(rows, queries, width, limit int, share float64) *corpus {
	vectors := func(n int) [][]int {
		all := make([][]int, n)
		for i := range all {
			all[i] = make([]int, width)
			for j := range all[i] {
				all[i][j] = b.rng.IntN(2*limit+1) - limit
			}
		}
		return all
	}
	c := &corpus{rows: vectors(rows), queries: vectors(queries), scale: func(int) float32 { return 1 }}
	for range queries {
		bits := make([]uint32, (rows+31)/32)
		for row := range rows {
			if b.rng.Float64() < share {
				bits[row/32] |= 1 << (row % 32)
			}
		}
		c.allowed = append(c.allowed, bits)
	}
	return c
}

type hit struct {
	row   int32
	score float32
}

// best is what a search for k has to find, by sorting everything.
func (c *corpus) best(query, k int) []hit {
	var hits []hit
	for row, v := range c.rows {
		if c.allowed[query][row/32]>>(row%32)&1 == 0 {
			continue
		}
		sum := 0
		for i, x := range v {
			sum += x * c.queries[query][i]
		}
		hits = append(hits, hit{int32(row), float32(sum) * c.scale(row)})
	}
	slices.SortFunc(hits, func(x, y hit) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.row, y.row)) })
	hits = hits[:min(k, len(hits))]
	for len(hits) < k {
		hits = append(hits, hit{-1, 0})
	}
	return hits
}

func (b *bench) answer(queries, k int) Answer {
	return Answer{Rows: room(b, 4*queries*k), Scores: room(b, 4*queries*k), Candidates: room(b, b.CandidateBytes(queries, k)), K: k}
}

// hits downloads an answer.
func (b *bench) hits(a Answer, query int) []hit {
	rows, scores := download[int32](b, a.Rows, (query+1)*a.K), download[float32](b, a.Scores, (query+1)*a.K)
	found := make([]hit, a.K)
	for i := range found {
		found[i] = hit{rows[query*a.K+i], scores[query*a.K+i]}
	}
	return found
}

func (b *bench) bitmaps(c *corpus) Allowed {
	return Allowed{upload(b, slices.Concat(c.allowed...)), len(c.allowed[0])}
}

func convert[T any](b *bench, vectors [][]int, number func(int) T) Vectors {
	var all []T
	for _, v := range vectors {
		for _, x := range v {
			all = append(all, number(x))
		}
	}
	return Vectors{Data: upload(b, all), Count: len(vectors), Width: len(vectors[0])}
}

func TestSearch(t *testing.T) {
	for _, test := range []struct {
		rows, queries, width, k int
		share                   float64
	}{
		{1, 1, 16, 1, 1}, {300, 3, 48, 10, 0.5}, {1000, 9, 80, 120, 0.9}, {700, 70, 32, 33, 0.3}, {200, 2, 16, 20, 0.03}, {100, 1, 16, 5, 0},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			b := open(t)
			c := b.corpus(test.rows, test.queries, test.width, 8, test.share)
			a := b.answer(test.queries, test.k)
			require.NoError(t, b.Search(cu.NoStream, a, convert(b, c.rows, half), convert(b, c.queries, half), b.bitmaps(c)))
			for q := range test.queries {
				require.Equal(t, c.best(q, test.k), b.hits(a, q), "query %d", q)
			}
		})
	}
}

func TestSearchBytes(t *testing.T) {
	for _, test := range [][4]int{{200, 3, 48, 10}, {300, 17, 144, 100}} { // rows, queries, width, k
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			b := open(t)
			c := b.corpus(test[0], test[1], test[2], 127, 0.7)
			c.scale = func(row int) float32 { return 2 / float32(int(1)<<(row%3)) } // exact, as products are
			number := func(x int) int8 { return int8(x) }
			rows, queries := convert(b, c.rows, number), convert(b, c.queries, number)
			ofRows, ofQueries := make([]float32, test[0]), make([]float32, test[1])
			for i := range ofRows {
				ofRows[i] = c.scale(i) / 4
			}
			for i := range ofQueries {
				ofQueries[i] = 4
			}
			rows.Scales, queries.Scales = upload(b, ofRows), upload(b, ofQueries)
			a := b.answer(test[1], test[3])
			require.NoError(t, b.Search(cu.NoStream, a, rows, queries, b.bitmaps(c)))
			for q := range test[1] {
				require.Equal(t, c.best(q, test[3]), b.hits(a, q), "query %d", q)
			}
		})
	}
}

// Scores that grow make every row a candidate, and the room run out at once.
func TestSearchOfGrowingScores(t *testing.T) {
	b := open(t)
	c := b.corpus(600, 9, 16, 1, 1)
	for row, v := range c.rows {
		clear(v)
		v[0], v[1] = row/32, row%32
	}
	for _, q := range c.queries {
		clear(q)
		q[0], q[1] = 32, 1
	}
	a := b.answer(9, 119)
	require.NoError(t, b.Search(cu.NoStream, a, convert(b, c.rows, half), convert(b, c.queries, half), b.bitmaps(c)))
	for q := range 9 {
		require.Equal(t, c.best(q, 119), b.hits(a, q))
	}
}

// One bitmap for all queries.
func TestSearchShared(t *testing.T) {
	b := open(t)
	c := b.corpus(300, 5, 16, 8, 0.5)
	for q := range c.allowed {
		c.allowed[q] = c.allowed[0]
	}
	a := b.answer(5, 10)
	require.NoError(t, b.Search(cu.NoStream, a, convert(b, c.rows, half), convert(b, c.queries, half), Allowed{upload(b, c.allowed[0]), 0}))
	for q := range 5 {
		require.Equal(t, c.best(q, 10), b.hits(a, q))
	}
}

// NaN is found by nobody, and nothing is found where there is nothing.
func TestSearchOfNothing(t *testing.T) {
	b := open(t)
	c := b.corpus(3, 2, 16, 8, 1)
	bits := func(n int) uint16 {
		if n == 99 {
			return 0x7e00
		}
		return half(n)
	}
	c.rows[1][5] = 99
	a, queries := b.answer(2, 4), convert(b, c.queries, half)
	rows := convert(b, c.rows, bits)
	require.NoError(t, b.Search(cu.NoStream, a, rows, queries, b.bitmaps(c)))
	for q := range 2 {
		c.allowed[q][0] &^= 1 << 1
		require.Equal(t, c.best(q, 4), b.hits(a, q))
	}
	rows.Count = 0
	require.NoError(t, b.Search(cu.NoStream, a, rows, queries, b.bitmaps(c)))
	require.Equal(t, []hit{{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}}, b.hits(a, 1))
}

func TestSearchLimits(t *testing.T) {
	b := open(t)
	require.Error(t, b.Search(cu.NoStream, Answer{K: 121}, Vectors{Width: 16}, Vectors{}, Allowed{}))
	require.Error(t, b.Search(cu.NoStream, Answer{}, Vectors{Width: 16}, Vectors{}, Allowed{}))
	require.Error(t, b.Search(cu.NoStream, Answer{K: 1}, Vectors{Width: 1 << 17}, Vectors{}, Allowed{}))
}
