package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

// Zipf draws numbers below n, of which the one of rank r (from 1) is drawn as
// often as r to the −s: at s = 0 all alike, at 1 as words of a language.
func Zipf(n int, s float64, random *rand.Rand) func() int {
	sums, sum := make([]float64, n), 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s)
		sums[i] = sum
	}
	return func() int { return min(sort.SearchFloat64s(sums, random.Float64()*sum), n-1) }
}

// Words draws runs of so many words of a text, a length as often as another.
func Words(text string, lengths []int, random *rand.Rand) func() string {
	words := strings.Fields(text)
	longest := min(slices.Max(lengths), len(words))
	return func() string {
		n := min(lengths[random.IntN(len(lengths))], longest)
		from := random.IntN(len(words) - longest + 1)
		return strings.Join(words[from:from+n], " ")
	}
}
