package complexity

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// told are the features of a query that are not 0, counts without their logarithm.
func told(query string) map[string]float64 {
	all := map[string]float64{}
	for i, value := range FeaturesOf(query) {
		if i <= numbers {
			value = math.Round(math.Expm1(value))
		}
		if value != 0 {
			all[Names[i]] = value
		}
	}
	return all
}

func TestFeatures(t *testing.T) {
	for query, want := range map[string]map[string]float64{
		"":                                     {},
		"?! … --":                              {},
		"password rotation":                    {"length": 2},
		"What did Priya sign in Lisbon?":       {"length": 6, "names": 2},
		"Error E1042 in the HTTP/2 gateway":    {"length": 6, "codes": 2},
		"SLA of SEV-1":                         {"length": 3, "codes": 2},
		"limits above 4,000 in 2024.":          {"length": 5, "numbers": 2},
		"Which row of Table 3 has the total?":  {"length": 8, "names": 1, "numbers": 1, "tabular": 1, "factual": 1},
		"WHY does it fail":                     {"length": 4, "codes": 1, "causal": 1},
		"how many days":                        {"length": 3, "causal": 1, "factual": 1},
		"Is \"gold\" better than silver?":      {"length": 5, "comparing": 1, "closed": 1},
		"what is it":                           {"length": 3},
		"Größe der Çok Dosya":                  {"length": 4, "names": 2},
		"報告書 第3章":                              {"length": 2, "codes": 1},
		"incomprehensibilities or compared.":   {"length": 2 + 1, "comparing": 1},
		"\xff\xfe who":                         {"length": 1, "factual": 1},
		"a" + strings.Repeat(" ", 5000) + "vs": {"length": 2, "comparing": 1},
	} {
		require.Equal(t, want, told(query), "%q", query)
	}
}

func TestTheLongestKnownWordFits(t *testing.T) {
	longest := 0
	for word := range kinds {
		longest = max(longest, len(word))
	}
	for word := range openers {
		longest = max(longest, len(word))
	}
	require.LessOrEqual(t, longest, maxKnown)
}

func TestTheModelThatIsBuiltIn(t *testing.T) {
	m := Trained()
	require.Len(t, m.Trained, 2)
	for _, source := range m.Trained {
		require.Equal(t, "dev", source.Split, "nothing is chosen on test cases")
		require.NotEmpty(t, source.Hard)
		require.Less(t, len(source.Hard), source.Cases)
	}
	require.InDelta(t, 1/(1+math.Exp(-m.Bias)), m.Of(""), 1e-12)
	require.Len(t, m.Version(), 8)
}

func TestTheVersionNamesTheCoefficients(t *testing.T) {
	m := Trained()
	again := m
	again.Trained = nil
	require.Equal(t, m.Version(), again.Version())
	again.Weights = slices.Clone(m.Weights)
	again.Weights[0] += 1e-6
	require.NotEqual(t, m.Version(), again.Version())
}

func TestNoAllocation(t *testing.T) {
	m := Trained()
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Of("Which row of Table 3 in the SEV-1 report says how many?") }))
}

// Any bytes get a probability, and spaces around and between words change nothing.
func FuzzOf(f *testing.F) {
	m := Trained()
	f.Add("Which row of Table 3?")
	f.Add("\xff ¿Por qué?\x00")
	f.Fuzz(func(t *testing.T, query string) {
		p := m.Of(query)
		require.True(t, p >= 0 && p <= 1, "%v", p)
		require.Equal(t, p, m.Of("  "+strings.Join(strings.Fields(query), " \n ")+" "))
	})
}

func BenchmarkOf(b *testing.B) {
	m := Trained()
	for b.Loop() {
		m.Of("Which row of Table 3 in the SEV-1 report says how many?")
	}
}
