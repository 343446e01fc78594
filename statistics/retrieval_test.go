package statistics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// By hand: 1/log2(2) = 1, 1/log2(3) = 0.6309, 1/log2(4) = 0.5, 1/log2(11) = 0.2891.
func TestMetricsByHand(t *testing.T) {
	for _, c := range []struct {
		name              string
		ranks             []int
		recall5, rr, ndcg float64 // Recall@5, RR@10, nDCG@10
	}{
		{"one item at the top", []int{1}, 1, 1, 1},
		{"one item third", []int{3}, 1, 1. / 3, 0.5},
		{"one item tenth", []int{10}, 0, 0.1, 0.2891},
		{"one item beyond", []int{11}, 0, 0, 0},
		{"one item missing", []int{0}, 0, 0, 0},
		{"two items at the top", []int{2, 1}, 1, 1, 1},
		{"two items in one result", []int{1, 1}, 1, 1, 1},
		{"two items in the second result", []int{2, 2}, 1, 0.5, 2 * 0.6309 / 1.6309},
		{"one of two", []int{0, 3}, 0.5, 1. / 3, 0.5 / 1.6309},
		{"three items, two in one result", []int{1, 10, 1}, 2. / 3, 1, (1 + 0.6309 + 0.2891) / 2.1309},
	} {
		require.InDelta(t, c.recall5, Recall(c.ranks, 5), 1e-4, c.name)
		require.InDelta(t, c.rr, ReciprocalRank(c.ranks, 10), 1e-4, c.name)
		require.InDelta(t, c.ndcg, NDCG(c.ranks, 10), 1e-4, c.name)
	}
}

// Where every result meets at most one item, the metrics are the textbook's,
// counted down a list of relevant and other results.
func TestMetricsAgainstTheTextbook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 15).Draw(t, "items")
		k := rapid.IntRange(1, 12).Draw(t, "k")
		places := rapid.Permutation([]int{0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}).Draw(t, "places")
		ranks := places[:n]
		gains := make([]float64, 16)
		for _, rank := range ranks {
			if rank > 0 {
				gains[rank-1] = 1
			}
		}
		found, first := 0.0, 0.0
		for i := range k {
			if gains[i] == 1 && found == 0 {
				first = 1 / float64(i+1)
			}
			found += gains[i]
		}
		got := []float64{NDCG(ranks, k), Recall(ranks, k), ReciprocalRank(ranks, k)}
		for i, want := range []float64{dcg(gains, k) / dcg(ones(n), k), found / float64(n), first} {
			if math.Abs(got[i]-want) > 1e-12 {
				t.Fatalf("metric %d of %v at %d = %v, want %v", i, ranks, k, got[i], want)
			}
		}
	})
}

func dcg(gains []float64, k int) float64 {
	sum := 0.0
	for i, gain := range gains {
		if i < k {
			sum += gain * math.Ln2 / math.Log(float64(i+2))
		}
	}
	return sum
}

func ones(n int) []float64 {
	gains := make([]float64, n)
	for i := range gains {
		gains[i] = 1
	}
	return gains
}
