package statistics

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// goldens are SciPy's and statsmodels' values.
type goldens struct {
	Pairs []struct {
		X, Y                       []float64
		Pearson, Spearman, Kendall [2]float64
		MannWhitney                [2]float64 `json:"mann_whitney"`
	}
	Groups []struct {
		Groups  [][]float64
		Kruskal [2]float64
	}
	Families []struct{ P, Holm, Bonferroni []float64 }
	Rates    []struct {
		Successes, Trials int
		Wilson            [2]float64
	}
	Differences []struct {
		Differences []float64
		P           float64
		Exact       bool
		Interval    [2]float64
	}
}

func readGoldens(t *testing.T) (g goldens) {
	t.Helper()
	text, err := os.ReadFile("testdata/scipy.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g))
	require.Len(t, g.Pairs, 6)
	require.Len(t, g.Groups, 3)
	require.Len(t, g.Families, 4)
	require.Len(t, g.Rates, 5)
	require.Len(t, g.Differences, 5)
	return g
}

const close = 1e-10

func equal(t *testing.T, want [2]float64, value, p float64) {
	t.Helper()
	require.InDelta(t, want[0], value, close)
	require.InDelta(t, want[1], p, close)
}

func TestAgreesWithSciPy(t *testing.T) {
	g := readGoldens(t)
	for _, c := range g.Pairs {
		r, p := Pearson(c.X, c.Y)
		equal(t, c.Pearson, r, p)
		r, p = Spearman(c.X, c.Y)
		equal(t, c.Spearman, r, p)
		r, p = Kendall(c.X, c.Y)
		equal(t, c.Kendall, r, p)
		moved := make([]float64, len(c.Y))
		for i, y := range c.Y {
			moved[i] = y + 0.3
		}
		p = MannWhitney(c.X, moved)
		require.InDelta(t, c.MannWhitney[1], p, .02)
	}
	for _, c := range g.Groups {
		h, p := KruskalWallis(c.Groups...)
		equal(t, c.Kruskal, h, p)
	}
	for _, c := range g.Families {
		require.InDeltaSlice(t, c.Holm, Holm(c.P), close)
		require.InDeltaSlice(t, c.Bonferroni, Bonferroni(c.P), close)
	}
	for _, c := range g.Rates {
		e := Rate(c.Successes, c.Trials)
		require.InDelta(t, float64(c.Successes)/float64(c.Trials), e.Mean, close)
		require.InDelta(t, c.Wilson[0], e.Low, close)
		require.InDelta(t, c.Wilson[1], e.High, close)
	}
}

// All signs give SciPy's value itself; of samples of them both have an error of
// their own, here of at most four standard deviations of ours.
func TestPairedDifferencesAgreeWithSciPy(t *testing.T) {
	for _, c := range readGoldens(t).Differences {
		p, e := SignFlip(c.Differences), Mean(c.Differences)
		if c.Exact {
			require.InDelta(t, c.P, p, close)
		} else {
			require.InDelta(t, c.P, p, 0.02)
		}
		width := c.Interval[1] - c.Interval[0]
		require.InDelta(t, c.Interval[0], e.Low, 0.05*width)
		require.InDelta(t, c.Interval[1], e.High, 0.05*width)
	}
}

func TestNothingIsKnownOfTooLittle(t *testing.T) {
	for name, of := range map[string]Correlation{"Pearson": Pearson, "Spearman": Spearman, "Kendall": Kendall} {
		for _, pair := range [][2][]float64{{nil, nil}, {{1, 2}, {2, 1}}, {{1, 1, 1}, {1, 2, 3}}, {{1, 2, 3}, {1, 1, 1}}} {
			r, p := of(pair[0], pair[1])
			require.Equal(t, [2]float64{0, 1}, [2]float64{r, p}, name)
		}
	}
	for _, groups := range [][][]float64{nil, {{1, 2}}, {{1, 2}, nil}, {{1, 1}, {1}}} {
		h, p := KruskalWallis(groups...)
		require.Equal(t, [2]float64{0, 1}, [2]float64{h, p})
	}
	for _, samples := range [][2][]float64{{nil, {1}}, {{1}, nil}} {
		p := MannWhitney(samples[0], samples[1])
		require.Equal(t, 1.0, p)
	}
	p := MannWhitney([]float64{1, 1}, []float64{1})
	require.Equal(t, 1.0, p)
	require.Equal(t, 1.0, SignFlip(nil))
	require.Equal(t, 1.0, SignFlip([]float64{0, 0}))
	require.Equal(t, Estimate{}, Rate(0, 0))
	require.Equal(t, Estimate{}, Mean(nil))
	require.Zero(t, Quantile(0.5, nil))
	require.Empty(t, Holm(nil))
}

func TestSignFlipKnowsNoDirectionAndNoScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Float64Range(-1, 1), 1, 20).Draw(t, "differences")
		turned := make([]float64, len(d))
		for i := range d {
			turned[i] = -4 * d[i]
		}
		require.Equal(t, SignFlip(d), SignFlip(turned))
	})
}

// The merge sort counts what comparing all pairs counts.
func TestDiscordance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 6), func(i int) float64 { return float64(i) }), n, n)
		x, y := values.Draw(t, "x"), values.Draw(t, "y")
		wantDiscordant, wantBoth := 0.0, 0.0
		for i := range x {
			for j := range i {
				switch {
				case x[i] == x[j] && y[i] == y[j]:
					wantBoth += 2
				case (x[i]-x[j])*(y[i]-y[j]) < 0:
					wantDiscordant++
				}
			}
		}
		discordant, both := discordance(x, y)
		require.Equal(t, [2]float64{wantDiscordant, wantBoth}, [2]float64{discordant, both})
	})
}

// Adjusting never lowers a p-value, keeps their order, and Holm's are never above
// Bonferroni's.
func TestAdjustedFamilies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 12).Draw(t, "p")
		holm, bonferroni := Holm(p), Bonferroni(p)
		for i := range p {
			require.LessOrEqual(t, p[i], holm[i])
			require.LessOrEqual(t, holm[i], bonferroni[i])
			for j := range p {
				if p[i] <= p[j] {
					require.LessOrEqual(t, holm[i], holm[j])
				}
			}
		}
	})
}

func TestACorrelationLiesInItsInterval(t *testing.T) {
	pair := readGoldens(t).Pairs[3]
	for _, of := range []Correlation{Pearson, Spearman, Kendall} {
		r, _ := of(pair.X, pair.Y)
		e := of.Interval(pair.X, pair.Y)
		require.InDelta(t, r, e.Mean, close)
		require.Less(t, e.Low, r)
		require.Less(t, r, e.High)
		require.Equal(t, e, of.Interval(pair.X, pair.Y), "it is seeded")
	}
}
