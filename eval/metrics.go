package eval

import (
	"fmt"
	"strconv"
	"strings"

	"sluice/statistics"
)

// Metric is a figure of one ranking between 0 and 1. Its argument holds, for
// each evidence item of a case, the 1-based rank of the first result that meets
// it, 0 where no result does; there is at least one item.
type Metric struct {
	Name string
	Of   func(ranks []int) float64
}

// metricsOf are the metrics of a data set: Recall@5 and @10, MRR@10, nDCG@10,
// and Recall and nDCG at the further cutoffs.
func metricsOf(cutoffs []int) []Metric {
	metrics := []Metric{recallAt(5), recallAt(10), mrrAt(10), ndcgAt(10)}
	for _, k := range cutoffs {
		metrics = append(metrics, recallAt(k), ndcgAt(k))
	}
	return metrics
}

// metricNamed is a metric of the same name as in the figures, at any cutoff.
func metricNamed(name string) (Metric, error) {
	family, cutoff, _ := strings.Cut(name, "@")
	k, err := strconv.Atoi(cutoff)
	at, known := map[string]func(int) Metric{"recall": recallAt, "mrr": mrrAt, "ndcg": ndcgAt}[family]
	if err != nil || k < 1 || !known {
		return Metric{}, fmt.Errorf("unknown metric %q: use recall@k, mrr@k or ndcg@k, with a number for k", name)
	}
	return at(k), nil
}

func recallAt(k int) Metric {
	return Metric{fmt.Sprintf("recall@%d", k), func(ranks []int) float64 { return statistics.Recall(ranks, k) }}
}

func mrrAt(k int) Metric {
	return Metric{fmt.Sprintf("mrr@%d", k), func(ranks []int) float64 { return statistics.ReciprocalRank(ranks, k) }}
}

func ndcgAt(k int) Metric {
	return Metric{fmt.Sprintf("ndcg@%d", k), func(ranks []int) float64 { return statistics.NDCG(ranks, k) }}
}
