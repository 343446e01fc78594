package ivf

import "math"

// DefaultRecall of the ten nearest rows is found unless another is wanted.
const DefaultRecall = 0.99

// effort is how far a search of lists goes.
type effort struct {
	// A list is visited if its centroid's squared distance to the query is no more
	// than that of the k-th row found and reach, or less where fewer rows are
	// allowed: base + fewer·log₁₀(allowed share).
	reach, base float64
	lists       float64 // squared, over the lists and the allowed share: see most
}

const (
	fewer  = 0.12
	fitted = 0.99 // the recall of the numbers in effortFor
)

// effortFor is the effort that finds so much of the ten nearest on average. It
// was fitted to 300,000 sentence vectors of which all or half are allowed: to
// miss a tenth as many, lists have to be visited that are .2 further away, and
// at most ⁴√10, 1.8, times as many.
func effortFor(recall float64) effort {
	missed := (1 - recall) / (1 - fitted)
	further := -0.2 * math.Log10(missed)
	return effort{reach: 0.145 + further, base: 0.165 + further, lists: 14 / math.Sqrt(missed)}
}

// reachAmong is the reach where a share of the rows is allowed.
func (e effort) reachAmong(share float64) float32 {
	return float32(min(e.reach, e.base+fewer*math.Log10(share)))
}
