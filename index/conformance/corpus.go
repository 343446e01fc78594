package conformance

import (
	"math"
	"math/rand/v2"
	"strings"

	"sluice/filter"
	"sluice/index"
)

// corpus makes random documents. Row numbers are never used again, as in the store.
type corpus struct {
	*rand.Rand
	dims    int
	nextRow uint32
}

// vocabulary is small, so that queries match many rows, and has words that
// stem alike, stop words and letters outside ASCII.
var vocabulary = strings.Fields(`alpha beta gamma delta running runs ran the of and
	failover fail over replica replicas quota limits limit café naïve straße 東京 user's 42 v1.2`)

func newCorpus(seed uint64, dims int) *corpus {
	return &corpus{rand.New(rand.NewPCG(seed, 1)), dims, 1}
}

func (c *corpus) words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[int(float64(len(vocabulary))*c.Float64()*c.Float64())]
	}
	return strings.Join(words, " ")
}

// vector has unit length; one in four is a coarse one, so that ties happen.
func (c *corpus) vector() []float32 {
	v, square := make([]float32, c.dims), 0.0
	coarse := c.IntN(4) == 0
	for i := range v {
		x := c.NormFloat64()
		if coarse {
			x = math.Copysign(1, x)
			if i > 1 {
				x = 1
			}
		}
		v[i] = float32(x)
		square += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(square))
	}
	return v
}

func (c *corpus) document(ordinal uint32) index.Document {
	d := index.Document{Ordinal: ordinal}
	for range c.IntN(6) {
		d.Rows = append(d.Rows, index.Row{Row: c.nextRow, Text: c.words(c.IntN(30)), Vector: c.vector()})
		c.nextRow++
	}
	c.nextRow += uint32(c.IntN(3))
	return d
}

// batch changes random documents of the ordinals [0, n).
func (c *corpus) batch(epoch uint64, n int) index.Batch {
	b := index.Batch{Epoch: epoch}
	for _, ordinal := range c.Perm(n)[:c.IntN(min(n, 12))+1] {
		if c.IntN(4) == 0 {
			b.Delete = append(b.Delete, uint32(ordinal))
		} else {
			b.Put = append(b.Put, c.document(uint32(ordinal)))
		}
	}
	return b
}

// set admits each of the ordinals [0, n) with a probability that is itself random.
func (c *corpus) set(n int) filter.Set {
	share := []float64{0, 0.02, 0.2, 0.7, 1}[c.IntN(5)]
	var ordinals []uint32
	for i := range n {
		if c.Float64() < share {
			ordinals = append(ordinals, uint32(i))
		}
	}
	return filter.SetOf(ordinals...)
}
