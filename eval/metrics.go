package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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
	return Metric{fmt.Sprintf("recall@%d", k), func(ranks []int) float64 { return Recall(ranks, k) }}
}

func mrrAt(k int) Metric {
	return Metric{fmt.Sprintf("mrr@%d", k), func(ranks []int) float64 { return ReciprocalRank(ranks, k) }}
}

func ndcgAt(k int) Metric {
	return Metric{fmt.Sprintf("ndcg@%d", k), func(ranks []int) float64 { return NDCG(ranks, k) }}
}

// Recall is the share of the evidence items that the first k results meet
// (Manning, Raghavan, Schütze: Introduction to Information Retrieval, 8.3, with
// evidence items in place of documents).
func Recall(ranks []int, k int) float64 {
	return float64(len(within(ranks, k))) / float64(len(ranks))
}

// ReciprocalRank is 1/r for the first relevant result at rank r ≤ k, else 0. Its
// mean over the cases is MRR@k (Voorhees: The TREC-8 Question Answering Track
// Report, 1999).
func ReciprocalRank(ranks []int, k int) float64 {
	met := within(ranks, k)
	if len(met) == 0 {
		return 0
	}
	return 1 / float64(met[0])
}

// NDCG is the discounted cumulative gain at k over the best possible one, with
// the discount 1/log2(1+rank) (Järvelin, Kekäläinen: Cumulated gain-based
// evaluation of IR techniques, 2002). The gain is binary and per evidence item:
// each counts once, at the first result that meets it (as the nuggets of Clarke
// et al.: Novelty and diversity in information retrieval evaluation, 2008). The
// ideal has all items at the top, one a rank; the i-th item met is therefore
// discounted as rank i at least, so that a result that meets several items
// reaches the ideal and does not pass it.
func NDCG(ranks []int, k int) float64 {
	gain, ideal := 0.0, 0.0
	for i, rank := range within(ranks, k) {
		if place := max(rank, i+1); place <= k {
			gain += 1 / math.Log2(1+float64(place))
		}
	}
	for i := range min(len(ranks), k) {
		ideal += 1 / math.Log2(2+float64(i))
	}
	return gain / ideal
}

// within returns the ranks from 1 to k in ascending order.
func within(ranks []int, k int) []int {
	var met []int
	for _, rank := range ranks {
		if rank >= 1 && rank <= k {
			met = append(met, rank)
		}
	}
	slices.Sort(met)
	return met
}
