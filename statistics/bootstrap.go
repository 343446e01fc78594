// Package statistics says what is known of figures over cases: intervals, tests
// and correlations; and how good one ranking is. What gonum has comes from gonum; the rest agrees with SciPy
// (testdata/goldens.py makes the values that the tests compare with).
package statistics

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Estimate is a figure of a sample with its 95 % interval.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const (
	resamples = 10_000
	seed      = 20261129
)

// Mean returns the mean of one value per case and the percentile bootstrap
// interval (Efron, Tibshirani: An Introduction to the Bootstrap, 13.3): the 2.5th
// and 97.5th percentile of the means of 10,000 resamples with replacement. The
// generator has a fixed seed, so equal values give an equal interval, and all
// strategies are resampled in the same cases. Of paired differences it is the
// paired interval.
func Mean(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	random := rand.New(rand.NewPCG(seed, 95))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[random.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	return interval(stat.Mean(values, nil), means)
}

// interval is that of a figure by the same figure of the resamples.
func interval(value float64, resampled []float64) Estimate {
	slices.Sort(resampled)
	return Estimate{
		Mean: value,
		Low:  stat.Quantile(0.025, stat.Empirical, resampled, nil),
		High: stat.Quantile(0.975, stat.Empirical, resampled, nil),
	}
}

// Quantile is the smallest value that a share p of all values does not exceed.
func Quantile(p float64, values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Quantile(p, stat.Empirical, slices.Sorted(slices.Values(values)), nil)
}
