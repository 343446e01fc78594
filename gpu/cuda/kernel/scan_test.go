//go:build nvidia

package kernel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// signs is a corpus whose rows are ±1, as codes have them, and the queries 4-bit numbers.
func (b *bench) signs(rows, queries, width int, share float64) *corpus {
	c := b.corpus(rows, queries, width, 1, share)
	for _, v := range c.rows {
		for i := range v {
			v[i] = 2*b.rng.IntN(2) - 1
		}
	}
	for _, q := range c.queries {
		for i := range q {
			q[i] = -7 + 2*b.rng.IntN(16) // low −7, step 2
		}
	}
	c.scale = func(row int) float32 { return 1 / float32(int(1)<<(row%4)) }
	return c
}

// codesOf packs a corpus of signs as scan.cu has it.
func (b *bench) codesOf(c *corpus) Codes {
	words, count := len(c.rows[0])/32, len(c.rows)
	bits, factors := make([]uint32, (count+31)/32*32*words), make([]float32, count)
	for row, v := range c.rows {
		factors[row] = c.scale(row)
		for i, x := range v {
			if x > 0 {
				bits[(row/32*words+i/32)*32+row%32] |= 1 << (i % 32)
			}
		}
	}
	return Codes{upload(b, bits), upload(b, factors), words, count}
}

func (b *bench) quantized(c *corpus) Quantized {
	var planes []uint32
	var numbers []float32
	for _, q := range c.queries {
		at, total := len(planes), 0
		planes = append(planes, make([]uint32, len(q)/32*4)...)
		for i, x := range q {
			total += x
			for j := range 4 {
				planes[at+i/32*4+j] |= uint32((x+7)/2>>j&1) << (i % 32)
			}
		}
		numbers = append(numbers, -7, 2, float32(total))
	}
	return Quantized{upload(b, planes), upload(b, numbers), len(c.queries)}
}

func TestScan(t *testing.T) {
	for _, test := range []struct {
		rows, queries, width, k int
		share                   float64
	}{
		{1, 1, 32, 3, 1}, {1000, 3, 96, 100, 0.9}, {3000, 17, 64, 30, 0.5}, {300, 16, 384, 120, 1}, {700, 2, 32, 10, 0.01},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			b := open(t)
			c := b.signs(test.rows, test.queries, test.width, test.share)
			a := b.answer(test.queries, test.k)
			require.NoError(t, b.Scan(cu.NoStream, a, b.codesOf(c), b.quantized(c), b.bitmaps(c)))
			for q := range test.queries {
				require.Equal(t, c.best(q, test.k), b.hits(a, q), "query %d", q)
			}
		})
	}
}

func TestScanLimits(t *testing.T) {
	b := open(t)
	require.Error(t, b.Scan(cu.NoStream, Answer{K: 121}, Codes{Words: 1}, Quantized{}, Allowed{}))
	require.Error(t, b.Scan(cu.NoStream, Answer{K: 1}, Codes{Words: 1 << 10}, Quantized{}, Allowed{}))
}
