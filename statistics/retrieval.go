package statistics

import (
	"math"
	"slices"
)

// What follows is of one ranking. ranks holds, for each of at least one evidence
// item, the 1-based rank of the first result that meets it, 0 where none does.

// Recall is the share of the evidence items that the first k results meet
// (Manning, Raghavan, Schütze: Introduction to Information Retrieval, 8.3, with
// evidence items in place of documents).
func Recall(ranks []int, k int) float64 {
	return float64(len(Within(ranks, k))) / float64(len(ranks))
}

// ReciprocalRank is 1/r for the first relevant result at rank r ≤ k, else 0. Its
// mean over the cases is MRR@k (Voorhees: The TREC-8 Question Answering Track
// Report, 1999).
func ReciprocalRank(ranks []int, k int) float64 {
	met := Within(ranks, k)
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
	for i, rank := range Within(ranks, k) {
		if place := max(rank, i+1); place <= k {
			gain += 1 / math.Log2(1+float64(place))
		}
	}
	for i := range min(len(ranks), k) {
		ideal += 1 / math.Log2(2+float64(i))
	}
	return gain / ideal
}

// Within returns the ranks from 1 to k in ascending order.
func Within(ranks []int, k int) []int {
	var met []int
	for _, rank := range ranks {
		if rank >= 1 && rank <= k {
			met = append(met, rank)
		}
	}
	slices.Sort(met)
	return met
}
