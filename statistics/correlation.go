package statistics

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

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
	_, tx := ranksOf(x)
	_, ty := ranksOf(y)
	n := float64(len(x))
	pairs := n * (n - 1)
	discordant, both := discordance(x, y)
	concordance := (pairs-falling(tx, 2)-falling(ty, 2)+both)/2 - 2*discordant
	r = concordance / math.Sqrt((pairs-falling(tx, 2))/2*(pairs-falling(ty, 2))/2)
	variance := (pairs*(2*n+5)-weighted(tx)-weighted(ty))/18 +
		falling(tx, 2)*falling(ty, 2)/(2*pairs) + falling(tx, 3)*falling(ty, 3)/(9*pairs*(n-2))
	return r, 2 * distuv.UnitNormal.Survival(math.Abs(concordance)/math.Sqrt(variance))
}

// discordance counts the pairs whose order in x and y differs, as the exchanges
// of a merge sort (Knight: A computer method for calculating Kendall's tau with
// ungrouped data, 1966), and Σ t(t−1) over the groups equal in both.
func discordance(x, y []float64) (discordant, both float64) {
	points := make([][2]float64, len(x))
	for i := range x {
		points[i] = [2]float64{x[i], y[i]}
	}
	slices.SortFunc(points, func(a, b [2]float64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	sorted, run := make([]float64, len(points)), 0.0
	for i, p := range points {
		if i > 0 && p != points[i-1] {
			run = 0
		}
		both += 2 * run // each meets those before it
		run++
		sorted[i] = p[1]
	}
	return exchanges(sorted, make([]float64, len(sorted))), both
}

// exchanges sorts the values and counts the pairs that were out of order.
func exchanges(values, spare []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	half := len(values) / 2
	count := exchanges(values[:half], spare[:half]) + exchanges(values[half:], spare[half:])
	left, right := values[:half], values[half:]
	for i := range spare {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			spare[i], left = left[0], left[1:]
		} else {
			spare[i], right = right[0], right[1:]
			count += float64(len(left))
		}
	}
	copy(values, spare)
	return count
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

// correlated is the number of resamples of a correlation, which sorts each.
const correlated = 1_000
