package eval

import (
	"maps"
	"slices"

	"sluice/statistics"
)

// allCases is the modality of every case.
const allCases = "all"

// Modality is how one strategy finds what questions of one kind ask for, by the
// tags of the data set. Rates have Wilson's intervals, means bootstrap's. The
// results of one question are not independent, so those of precision and recall
// are somewhat too narrow.
type Modality struct {
	Strategy  string              `json:"strategy"`
	Tag       string              `json:"tag"`
	Cases     int                 `json:"cases"`     // answerable
	Hit       statistics.Estimate `json:"hit"`       // cases with any evidence among the first k
	Precision statistics.Estimate `json:"precision"` // of k results each, those that meet evidence
	Recall    statistics.Estimate `json:"recall"`    // of all items of evidence
	NDCG      statistics.Estimate `json:"ndcg"`
	MRR       statistics.Estimate `json:"mrr"`
}

func modalities(cases []Case, run Recorded, k int) []Modality {
	tags := map[string][]string{}
	for _, c := range cases {
		tags[c.ID] = append([]string{allCases}, c.Tags...)
	}
	var all []Modality
	for _, strategy := range run.strategies() {
		byTag := map[string][]Answer{}
		for _, a := range run.of(strategy) {
			if len(a.EvidenceRanks) == 0 {
				continue
			}
			for _, tag := range tags[a.Case] {
				byTag[tag] = append(byTag[tag], a)
			}
		}
		for _, tag := range sortedKeys(byTag) {
			all = append(all, newModality(strategy, tag, byTag[tag], k))
		}
	}
	return all
}

func newModality(strategy, tag string, answers []Answer, k int) Modality {
	var hits, relevant, met, items int
	var ndcg, reciprocal []float64
	for _, a := range answers {
		found := len(statistics.Within(a.EvidenceRanks, k))
		met, items, hits = met+found, items+len(a.EvidenceRanks), hits+min(found, 1)
		for _, r := range a.Results[:min(k, len(a.Results))] {
			if r.Relevant {
				relevant++
			}
		}
		ndcg, reciprocal = append(ndcg, statistics.NDCG(a.EvidenceRanks, k)), append(reciprocal, statistics.ReciprocalRank(a.EvidenceRanks, k))
	}
	n := len(answers)
	return Modality{
		Strategy: strategy, Tag: tag, Cases: n, Hit: statistics.Rate(hits, n), Precision: statistics.Rate(relevant, n*k),
		Recall: statistics.Rate(met, items), NDCG: statistics.Mean(ndcg), MRR: statistics.Mean(reciprocal),
	}
}

// retrievalStages are nDCG@k by case, for each strategy.
func retrievalStages(run Recorded, k int) []stage {
	var all []stage
	for _, strategy := range run.strategies() {
		s := stage{"retrieval, " + strategy, map[string]float64{}}
		for _, a := range run.of(strategy) {
			if len(a.EvidenceRanks) > 0 {
				s.values[a.Case] = statistics.NDCG(a.EvidenceRanks, k)
			}
		}
		all = append(all, s)
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
