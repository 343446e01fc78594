package statistics

import "slices"

// Holm adjusts the p-values of a family of tests, so that each below a bound is
// wrong in any of them no more often than that (Holm: A simple sequentially
// rejective multiple test procedure, 1979).
func Holm(p []float64) []float64 {
	adjusted, least := make([]float64, len(p)), 0.0
	for done, i := range ascending(p) {
		least = max(least, min(1, p[i]*float64(len(p)-done)))
		adjusted[i] = least
	}
	return adjusted
}

// Bonferroni adjusts the p-values of a family of tests by their number alone.
func Bonferroni(p []float64) []float64 {
	adjusted := make([]float64, len(p))
	for i := range p {
		adjusted[i] = min(1, p[i]*float64(len(p)))
	}
	return adjusted
}

// ascending is the order of the values: the index of the smallest first.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	return order
}
