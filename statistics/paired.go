package statistics

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
)

// exactDifferences is up to how many differences all signs are tried.
const exactDifferences = 13

// SignFlip is the two-sided p-value of paired differences by Fisher's
// randomization test (Smucker, Allan, Carterette: A comparison of statistical
// significance tests for information retrieval evaluation, CIKM 2007): the share
// of assignments of signs under which the sum is at least as far from 0. All
// signs are tried of up to 13 differences, of more 10,000 seeded assignments and
// the one observed. Differences of 0 decide nothing.
func SignFlip(differences []float64) float64 {
	var moved []float64
	for _, d := range differences {
		if d != 0 {
			moved = append(moved, d)
		}
	}
	if len(moved) <= exactDifferences {
		return signFlipAll(moved)
	}
	random := rand.New(rand.NewPCG(seed, 96))
	observed, far := floats.Sum(moved), 1
	for range resamples {
		flipped := 0.0
		for at := 0; at < len(moved); at += 64 {
			flipped += signed(moved[at:min(at+64, len(moved))], random.Uint64())
		}
		far += atLeast(flipped, observed)
	}
	return float64(far) / (resamples + 1)
}

func signFlipAll(moved []float64) float64 {
	observed, far, all := floats.Sum(moved), 0, 1<<len(moved)
	for signs := range all {
		far += atLeast(signed(moved, uint64(signs)), observed)
	}
	return float64(far) / float64(all)
}

// signed is the sum with the signs of those turned whose bit is set.
func signed(values []float64, signs uint64) float64 {
	total := 0.0
	for i, v := range values {
		if signs&(1<<i) != 0 {
			v = -v
		}
		total += v
	}
	return total
}

// atLeast is 1 if a sum is as far from 0 as the observed, rounding aside.
func atLeast(flipped, observed float64) int {
	if math.Abs(flipped) >= math.Abs(observed)*(1-1e-12) {
		return 1
	}
	return 0
}
