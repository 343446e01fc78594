package retrieve

import (
	"cmp"
	"math"
	"slices"

	"sluice/index"
)

// candidate is a row some leg found.
type candidate struct {
	row     uint32
	ordinal uint32
	score   float64
	coded   bool // the store has token codes of it, of the present model
	legs    map[string]LegRank
}

// leg is one ranked list of at most depth hits.
type leg struct {
	name   string
	depth  int
	weight float64 // in a sum; 0 among reciprocal ranks is 1
	hits   []index.Hit
}

// single ranks the hits of one leg by that leg's own score.
func single(l leg) []candidate {
	out := collect([]leg{l})
	for i := range out {
		out[i].score = out[i].legs[l.name].Score
	}
	return ranked(out)
}

// reciprocalRank fuses legs: score = Σ weight/(constant + rank) over the legs
// that found the row (Cormack, Clarke and Büttcher, SIGIR 2009, with weights).
func reciprocalRank(constant int, legs []leg) []candidate {
	out := collect(legs)
	for i := range out {
		for _, l := range legs { // in the order of the legs: sums of floats depend on it
			if r, ok := out[i].legs[l.name]; ok {
				out[i].score += cmp.Or(l.weight, 1) / float64(constant+r.Rank)
			}
		}
	}
	return ranked(out)
}

// weightedSum fuses legs: score = Σ weight · the row's score in the leg (the
// convex combination of Bruch, Gai and Ingber, TOIS 2023). Scores keep the legs'
// own scales, for these say how sure a leg is: BM25 grows with every rare word of
// the query that a row has, and cosines lie apart where the meaning is plain.
// Whatever makes all queries' scores alike makes both legs count alike for all.
func weightedSum(legs []leg) []candidate {
	out := collect(legs)
	for i, c := range out {
		for _, l := range legs {
			out[i].score += float64(l.weight * l.score(c))
		}
	}
	return ranked(out)
}

// standardScore ranks a pool of candidates: score = Σ weight · z, z being how
// many standard deviations a row's score in the leg is above the mean of the
// pool. It is 0 for all where a leg's scores do not differ.
func standardScore(legs []leg, pool []candidate) []candidate {
	for i := range pool {
		pool[i].score = 0
	}
	scores := make([]float64, len(pool))
	for _, l := range legs {
		for i, c := range pool {
			scores[i] = l.score(c)
		}
		mean, deviation := moments(scores)
		for i := range pool {
			if deviation > 0 {
				pool[i].score += float64(l.weight * (scores[i] - mean) / deviation)
			}
		}
	}
	return ranked(pool)
}

// score is what a row counts as in the leg. One that was not found counts as
// the last hit where the leg is full, for it could not have had more; else as 0,
// for then it has no term of the query.
func (l leg) score(c candidate) float64 {
	if r, found := c.legs[l.name]; found {
		return r.Score
	}
	if n := len(l.hits); n > 0 && n == l.depth {
		return float64(l.hits[n-1].Score)
	}
	return 0
}

// moments returns the mean and the standard deviation.
func moments(xs []float64) (mean, deviation float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		deviation += float64((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(deviation / float64(len(xs)))
}

// collect lists every row once, with its rank and score in each leg.
func collect(legs []leg) []candidate {
	place := map[uint32]int{}
	var out []candidate
	for _, l := range legs {
		for i, hit := range l.hits {
			at, seen := place[hit.Row]
			if !seen {
				at = len(out)
				place[hit.Row] = at
				out = append(out, candidate{row: hit.Row, ordinal: hit.Ordinal, legs: map[string]LegRank{}})
			}
			out[at].legs[l.name] = LegRank{Rank: i + 1, Score: float64(hit.Score)}
		}
	}
	return out
}

// ranked orders by score, best first; ties go to the lower row, so that equal
// states give equal answers.
func ranked(c []candidate) []candidate {
	slices.SortFunc(c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	})
	return c
}
