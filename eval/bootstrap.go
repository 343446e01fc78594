package eval

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Estimate is a mean over cases with its 95 % interval.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const resamples = 10_000

// estimate returns the mean of one value per case and the percentile bootstrap
// interval (Efron, Tibshirani: An Introduction to the Bootstrap, 13.3): the 2.5th
// and 97.5th percentile of the means of 10,000 resamples with replacement. The
// generator has a fixed seed, so equal values give an equal interval, and all
// strategies are resampled in the same cases.
func estimate(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{}
	}
	random := rand.New(rand.NewPCG(20261129, 95))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[random.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	return Estimate{
		Mean: stat.Mean(values, nil),
		Low:  stat.Quantile(0.025, stat.Empirical, means, nil),
		High: stat.Quantile(0.975, stat.Empirical, means, nil),
	}
}

// quantile is the smallest value that a share p of all values does not exceed.
func quantile(p float64, values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return stat.Quantile(p, stat.Empirical, sorted, nil)
}
