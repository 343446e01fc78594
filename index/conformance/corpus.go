package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"sluice/filter"
	"sluice/index"
)

// Corpus makes random documents. Row numbers are never used again, as in the store.
type Corpus struct {
	*rand.Rand
	dims    int
	nextRow uint32
}

// vocabulary is small, so that queries match many rows, and has words that
// stem alike, stop words and letters outside ASCII.
var vocabulary = strings.Fields(`alpha beta gamma delta running runs ran the of and
	failover fail over replica replicas quota limits limit café naïve straße 東京 user's 42 v1.2`)

// NewCorpus is the same for the same seed.
func NewCorpus(seed uint64, dims int) *Corpus {
	return &Corpus{rand.New(rand.NewPCG(seed, 1)), dims, 1}
}

// Words returns n words of a small vocabulary, some far more often than others.
func (c *Corpus) Words(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[int(float64(len(vocabulary))*c.Float64()*c.Float64())]
	}
	return strings.Join(words, " ")
}

// Query returns n words, some in phrases or as prefixes, some with a stray mark.
func (c *Corpus) Query(n int) string {
	words := strings.Fields(c.Words(n))
	for i := range words {
		switch c.IntN(8) {
		case 0:
			words[i] = `"` + words[i] + " " + c.Words(1+c.IntN(2)) + `"`
		case 1:
			runes := []rune(words[i])
			words[i] = string(runes[:min(len(runes), 3)]) + "*"
		case 2:
			words[i] += []string{`"`, "*", "**"}[c.IntN(3)]
		}
	}
	return strings.Join(words, " ")
}

// Vector has unit length; one in four is a coarse one, so that ties happen.
func (c *Corpus) Vector() []float32 {
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

// Document has up to five rows.
func (c *Corpus) Document(ordinal uint32) index.Document {
	d := index.Document{Ordinal: ordinal}
	for range c.IntN(6) {
		row := index.Row{Row: c.nextRow, Text: c.Words(c.IntN(30)), Vector: c.Vector()}
		if c.IntN(2) == 0 {
			row.Title, row.Heading = c.Words(c.IntN(3)), c.Words(c.IntN(4))
		}
		d.Rows = append(d.Rows, row)
		c.nextRow++
	}
	c.nextRow += uint32(c.IntN(3))
	return d
}

// rareWord is one of a thousand words, some far more often than others.
func (c *Corpus) rareWord() string {
	return fmt.Sprintf("w%d", int(1000*c.Float64()*c.Float64()*c.Float64()))
}

// RareDocument has a few rows of such words.
func (c *Corpus) RareDocument(ordinal uint32) index.Document {
	d := index.Document{Ordinal: ordinal}
	for range 1 + c.IntN(4) {
		words := make([]string, 1+c.IntN(40))
		for i := range words {
			words[i] = c.rareWord()
		}
		d.Rows = append(d.Rows, index.Row{Row: c.nextRow, Title: c.rareWord(), Text: strings.Join(words, " "), Vector: c.Vector()})
		c.nextRow++
	}
	return d
}

// RareQuery asks for n of such words, sometimes for a phrase or a prefix.
func (c *Corpus) RareQuery(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = c.rareWord()
		switch c.IntN(10) {
		case 0:
			words[i] = `"` + words[i] + " " + c.rareWord() + `"`
		case 1:
			words[i] += "*"
		}
	}
	return strings.Join(words, " ")
}

// ordinals are n of [0, below).
func (c *Corpus) ordinals(n, below int) (some []uint32) {
	for range n {
		some = append(some, uint32(c.IntN(below)))
	}
	return some
}

// admitting is the Set of those of the ordinals [0, n).
func admitting(n uint32, admits func(uint32) bool) filter.Set {
	var ordinals []uint32
	for ordinal := range n {
		if admits(ordinal) {
			ordinals = append(ordinals, ordinal)
		}
	}
	return filter.SetOf(ordinals...)
}

// OneIn admits that share of the ordinals [0, n) at random.
func (c *Corpus) OneIn(share, n int) filter.Set {
	var ordinals []uint32
	for i := range n {
		if c.IntN(share) == 0 {
			ordinals = append(ordinals, uint32(i))
		}
	}
	return filter.SetOf(ordinals...)
}

// Batch changes random documents of the ordinals [0, n).
func (c *Corpus) Batch(epoch uint64, n int) index.Batch {
	b := index.Batch{Epoch: epoch}
	for _, ordinal := range c.Perm(n)[:c.IntN(min(n, 12))+1] {
		if c.IntN(4) == 0 {
			b.Delete = append(b.Delete, uint32(ordinal))
		} else {
			b.Put = append(b.Put, c.Document(uint32(ordinal)))
		}
	}
	return b
}

// Set admits each of the ordinals [0, n) with a probability that is itself random.
func (c *Corpus) Set(n int) filter.Set {
	share := []float64{0, 0.02, 0.2, 0.7, 1}[c.IntN(5)]
	var ordinals []uint32
	for i := range n {
		if c.Float64() < share {
			ordinals = append(ordinals, uint32(i))
		}
	}
	return filter.SetOf(ordinals...)
}
