package statistics

import (
	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// ranksOf gives every value its 1-based rank, equal values the mean of theirs,
// and the sizes of the groups of equal values.
func ranksOf(values []float64) (ranks []float64, ties []float64) {
	order := ascending(values)
	ranks = make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		ties = append(ties, float64(to-from))
		from = to
	}
	return ranks, ties
}

// tied is Σ (t³ − t) over the groups of equal values.
func tied(ties []float64) float64 {
	total := 0.0
	for _, t := range ties {
		total += t*t*t - t
	}
	return total
}

// KruskalWallis tests whether groups have the same distribution (Kruskal, Wallis:
// Use of ranks in one-criterion variance analysis, 1952): the statistic H,
// corrected for ties, and the p-value by the χ² distribution with one degree of
// freedom fewer than there are groups. Groups without a value do not count. It is
// 0 and 1 where there is nothing to compare.
func KruskalWallis(groups ...[]float64) (h, p float64) {
	var all []float64
	counted := 0
	for _, g := range groups {
		all = append(all, g...)
		counted += min(len(g), 1)
	}
	n := float64(len(all))
	ranks, ties := ranksOf(all)
	correction := 1 - tied(ties)/(n*n*n-n)
	if counted < 2 || correction == 0 {
		return 0, 1
	}
	at := 0
	for _, g := range groups {
		if len(g) > 0 {
			s := floats.Sum(ranks[at : at+len(g)])
			h += s * s / float64(len(g))
		}
		at += len(g)
	}
	h = (12/(n*(n+1))*h - 3*(n+1)) / correction
	return h, distuv.ChiSquared{K: float64(counted - 1)}.Survival(h)
}

// MannWhitney tests whether values of one sample tend to exceed those of another:
// the two-sided p-value, exact for samples of up to fifty; 1 where all are equal.
func MannWhitney(a, b []float64) float64 {
	r, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers)
	if err != nil {
		return 1
	}
	return r.P
}
