package late

import "sluice/kernels/simd"

// Query is a query's tokens, to score passages by. Safe for concurrent use.
type Query struct {
	coder  *Coder
	signs  simd.SimQuery   // for codes of 1 bit
	tokens *simd.SimQuery8 // of 8
}

// Query prepares a query; its arguments are as Encode's.
func (c *Coder) Query(vectors []float32, special []bool) *Query {
	s := c.scratch.Get().(*scratch)
	defer c.scratch.Put(s)
	q := &Query{coder: c}
	if rotated := c.rotate(s, vectors, special); c.Bits == 1 {
		q.signs.Reset(rotated, c.Dimensions)
	} else {
		q.tokens = simd.NewSimQuery8(rotated, c.Dimensions)
	}
	return q
}

// Score is the mean over the query's tokens of the best match in the passage
// (MaxSim), an estimate of a cosine: −1 for a passage without tokens. It
// is false where the Coder does not read the codes.
func (q *Query) Score(codes []byte) (score float32, ok bool) {
	rows, ok := q.coder.Rows(codes)
	if !ok {
		return 0, false
	}
	if q.coder.Bits == 1 {
		return q.coder.kernels.MaxSim(&q.signs, rows), true
	}
	s := q.coder.scratch.Get().(*scratch)
	defer q.coder.scratch.Put(s)
	return q.coder.kernels.MaxSim8(q.tokens, rows, &s.products), true
}
