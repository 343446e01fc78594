package statistics

import "math"

// z95 is the 97.5th percentile of the normal distribution.
const z95 = 1.959963984540054

// Rate is the share of successes with its 95 % interval by Wilson's score
// (Probable inference, the law of succession, and statistical inference, 1927),
// which stays within 0 and 1 and has a width at 0 and 1 too.
func Rate(successes, trials int) Estimate {
	if trials == 0 {
		return Estimate{}
	}
	n, p := float64(trials), float64(successes)/float64(trials)
	centre := (p + z95*z95/(2*n)) / (1 + z95*z95/n)
	half := z95 / (1 + z95*z95/n) * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	return Estimate{Mean: p, Low: max(0, centre-half), High: min(1, centre+half)}
}
