package statistics

import (
	"cmp"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Correlation measures how two figures of the same cases go together, from −1 to
// 1, and how likely that is by chance. Of fewer than three cases, and where a
// figure is the same in all, nothing is known: 0 and 1.
type Correlation func(x, y []float64) (r, p float64)

// Pearson's correlation is of a straight line; its p-value by Student's t.
func Pearson(x, y []float64) (r, p float64) {
	if !varies(x) || !varies(y) {
		return 0, 1
	}
	r = stat.Correlation(x, y, nil)
	freedom := float64(len(x) - 2)
	if r*r >= 1 {
		return r, 0
	}
	t := math.Abs(r) * math.Sqrt(freedom/(1-r*r))
	return r, 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(t)
}

// Spearman's correlation is Pearson's of the ranks.
func Spearman(x, y []float64) (r, p float64) {
	a, _ := ranksOf(x)
	b, _ := ranksOf(y)
	return Pearson(a, b)
}

// Kendall's correlation is τ-b (Kendall: The treatment of ties in ranking
// problems, 1945); its p-value by the normal distribution, with the variance
// corrected for ties.
func Kendall(x, y []float64) (r, p float64) {
	if !varies(x) || !varies(y) {
		return 0, 1
	}
	concordance := 0.0
	for i := range x {
		for j := range i {
			concordance += float64(cmp.Compare(x[i], x[j]) * cmp.Compare(y[i], y[j]))
		}
	}
	_, tx := ranksOf(x)
	_, ty := ranksOf(y)
	n := float64(len(x))
	pairs := n * (n - 1)
	r = concordance / math.Sqrt((pairs-falling(tx, 2))/2*(pairs-falling(ty, 2))/2)
	variance := (pairs*(2*n+5)-weighted(tx)-weighted(ty))/18 +
		falling(tx, 2)*falling(ty, 2)/(2*pairs) + falling(tx, 3)*falling(ty, 3)/(9*pairs*(n-2))
	return r, 2 * distuv.UnitNormal.Survival(math.Abs(concordance)/math.Sqrt(variance))
}

// falling is Σ t(t−1)…, of so many factors, over the groups of equal values.
func falling(ties []float64, factors int) float64 {
	total := 0.0
	for _, t := range ties {
		product := t
		for i := 1; i < factors; i++ {
			product *= t - float64(i)
		}
		total += product
	}
	return total
}

// weighted is Σ t(t−1)(2t+5).
func weighted(ties []float64) float64 {
	total := 0.0
	for _, t := range ties {
		total += t * (t - 1) * (2*t + 5)
	}
	return total
}

// varies reports whether three values or more are not all the same.
func varies(values []float64) bool {
	for _, v := range values[min(1, len(values)):] {
		if v != values[0] {
			return len(values) > 2
		}
	}
	return false
}

// Interval is the correlation with its percentile bootstrap interval over the
// cases, seeded.
func (c Correlation) Interval(x, y []float64) Estimate {
	random := rand.New(rand.NewPCG(seed, 97))
	a, b := make([]float64, len(x)), make([]float64, len(x))
	resampled := make([]float64, correlated)
	for i := range resampled {
		for at := range a {
			from := random.IntN(len(x))
			a[at], b[at] = x[from], y[from]
		}
		resampled[i], _ = c(a, b)
	}
	r, _ := c(x, y)
	return interval(r, resampled)
}

// correlated is the number of resamples of a correlation, whose cost grows with
// the square of the cases.
const correlated = 2_000
