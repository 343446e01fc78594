package eval

import (
	"testing"

	"pgregory.net/rapid"
)

// Every metric is between 0 and 1, at best 1, and no worse for a better rank.
func TestMetricsAreBoundedAndMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.SliceOfN(rapid.IntRange(0, 14), 1, 12).Draw(t, "ranks")
		better := append([]int(nil), ranks...)
		i := rapid.IntRange(0, len(ranks)-1).Draw(t, "item")
		if better[i] != 1 {
			better[i] = max(better[i], 15) - 14
		}
		for _, m := range metricsOf([]int{6}) {
			value, improved := m.Of(ranks), m.Of(better)
			if value < 0 || value > 1+1e-12 || improved < value-1e-12 {
				t.Fatalf("%s(%v) = %v, of %v = %v", m.Name, ranks, value, better, improved)
			}
		}
	})
}
