package eval

import (
	"fmt"
	"strings"

	"sluice/index/text"
	"sluice/statistics"
)

// Association says how nDCG@10 of a strategy goes with a property of the cases.
// P-values are adjusted for the number of associations by Bonferroni.
type Association struct {
	Strategy string              `json:"strategy"`
	Factor   string              `json:"factor"`
	Pearson  statistics.Estimate `json:"pearson"`
	Spearman statistics.Estimate `json:"spearman"`
	Kendall  statistics.Estimate `json:"kendall"`
	P        float64             `json:"p"`        // of Kendall's, whatever the shape
	Buckets  float64             `json:"buckets"`  // Kruskal–Wallis H over the thirds of the factor
	BucketsP float64             `json:"bucket_p"` // likewise adjusted
}

// Factors of a case.
const (
	factorOverlap = "overlap"     // share of the query's terms that the quotes repeat
	factorTerms   = "query terms" // how many it has
)

// associate measures every strategy against every factor, over the answerable
// cases whose evidence is quoted.
func associate(cases []Case, answers []Answer, strategies []string) ([]Association, error) {
	factors, err := factorsOf(cases)
	if err != nil {
		return nil, err
	}
	var all []Association
	for _, strategy := range strategies {
		for _, name := range []string{factorOverlap, factorTerms} {
			x, y := paired(factors[name], answers, strategy)
			if len(x) < 3 {
				continue
			}
			a := Association{Strategy: strategy, Factor: name}
			a.measure(x, y)
			all = append(all, a)
		}
	}
	adjust(all)
	return all, nil
}

// adjust adjusts the p-values for their number.
func adjust(all []Association) {
	var p []float64
	for _, a := range all {
		p = append(p, a.P, a.BucketsP)
	}
	for i, adjusted := range statistics.Bonferroni(p) {
		if a := &all[i/2]; i%2 == 0 {
			a.P = adjusted
		} else {
			a.BucketsP = adjusted
		}
	}
}

func (a *Association) measure(x, y []float64) {
	a.Pearson = statistics.Correlation(statistics.Pearson).Interval(x, y)
	a.Spearman = statistics.Correlation(statistics.Spearman).Interval(x, y)
	a.Kendall = statistics.Correlation(statistics.Kendall).Interval(x, y)
	_, a.P = statistics.Kendall(x, y)
	low, high := statistics.Quantile(1.0/3, x), statistics.Quantile(2.0/3, x)
	var thirds [3][]float64
	for i, value := range x {
		switch {
		case value <= low:
			thirds[0] = append(thirds[0], y[i])
		case value <= high:
			thirds[1] = append(thirds[1], y[i])
		default:
			thirds[2] = append(thirds[2], y[i])
		}
	}
	a.Buckets, a.BucketsP = statistics.KruskalWallis(thirds[:]...)
}

// factorsOf are the factors' values by case; of whole documents none are known.
func factorsOf(cases []Case) (map[string]map[string]float64, error) {
	analyzer, err := text.New(text.Default)
	if err != nil {
		return nil, err
	}
	factors := map[string]map[string]float64{factorOverlap: {}, factorTerms: {}}
	for _, c := range cases {
		var quotes strings.Builder
		for _, e := range c.Evidence {
			quotes.WriteString(e.Quote + "\n")
		}
		if strings.TrimSpace(quotes.String()) == "" {
			continue
		}
		terms := 0
		for range analyzer.Terms(c.Query) {
			terms++
		}
		factors[factorTerms][c.ID] = float64(terms)
		factors[factorOverlap][c.ID] = overlap(analyzer, c.Query, quotes.String())
	}
	return factors, nil
}

// paired are a factor's values and the nDCG@10 of a strategy, case by case.
func paired(factor map[string]float64, answers []Answer, strategy string) (x, y []float64) {
	for _, a := range answers {
		if value, known := factor[a.Case]; known && a.Strategy == strategy {
			x, y = append(x, value), append(y, statistics.NDCG(a.EvidenceRanks, 10))
		}
	}
	return x, y
}

func (r Report) writeAssociations(b *strings.Builder) {
	if len(r.Associations) == 0 {
		return
	}
	b.WriteString("\n## What nDCG@10 goes with\n")
	writeAssociations(b, "Strategy", r.Associations)
}

func writeAssociations(b *strings.Builder, what string, all []Association) {
	fmt.Fprintf(b, "\n95 %% bootstrap intervals; p-values are adjusted for their number (Bonferroni).\n\n"+
		"| %s | Factor | Pearson | Spearman | Kendall | p | Kruskal–Wallis over thirds | p |\n|%s\n", what, strings.Repeat(" --- |", 8))
	for _, a := range all {
		fmt.Fprintf(b, "| %s | %s |", a.Strategy, a.Factor)
		for _, e := range []statistics.Estimate{a.Pearson, a.Spearman, a.Kendall} {
			fmt.Fprintf(b, " %+.2f [%+.2f, %+.2f] |", e.Mean, e.Low, e.High)
		}
		fmt.Fprintf(b, " %.3f | %.2f | %.3f |\n", a.P, a.Buckets, a.BucketsP)
	}
}
