package local

import (
	"math"

	"sluice/kernels/simd"
)

// Parameters of BM25: how fast repetition saturates, how much length counts.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// bm25 weighs one clause in one row:
//
//	w · ln(1 + (N − df + ½)/(df + ½)) · tf / (tf + k1·(1 − b + b·length/average))
//
// summed over the distinct clauses of the query, w being how often the query
// has the clause. N, df and average are those of the allowed rows. This is
// "Lucene (accurate)" of Kamphuis, de Vries, Boytsov and Lin, "Which BM25 Do
// You Mean?", ECIR 2020; tf and length are sums over the fields, each times the
// field's weight (Robertson, Zaragoza and Taylor, CIKM 2004).
type bm25 struct {
	rows  float64
	base  float64 // k1·(1 − b)
	slope float64 // k1·b/average
}

func newBM25(rows, length uint64) bm25 {
	return bm25{float64(rows), bm25K1 * (1 - bm25B), bm25K1 * bm25B * float64(rows) / float64(length)}
}

func (m bm25) idf(df uint64) float64 {
	return math.Log(1 + (m.rows-float64(df)+0.5)/(float64(df)+0.5))
}

// term is the score of one clause, in points, of which a posting has at least 1.
func (m bm25) term(weight float64) simd.Saturation {
	return simd.Saturation{Weight: weight, Base: m.base, Slope: m.slope}
}

// Scores are added up as whole numbers, so that the sum does not depend on the
// order: most is what all clauses together can reach.
const most = 1 << 31
