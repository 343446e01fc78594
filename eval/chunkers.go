package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sluice/statistics"
)

// ChunkerComparison is the same run by several chunkers: the first is the baseline,
// the others are compared with it case by case.
type ChunkerComparison struct {
	Chunkers    []string
	Reports     []Report                         // one a chunker
	Whole       []map[string]statistics.Estimate // "whole_recall@6" of each chunker, by strategy
	Differences []Difference
}

// Difference is by how much one chunker's answers by one strategy are better than
// the baseline's: the means of the paired differences. Tag "": over all answerable
// cases.
type Difference struct {
	Chunker  string
	Strategy string
	Tag      string
	Cases    int
	Metrics  map[string]statistics.Estimate
}

// CompareChunkers runs the gate once by each chunker, each time on a service of its own.
// It stops at the first run that does not pass.
func CompareChunkers(ctx context.Context, o Options, chunkers []string) (ChunkerComparison, error) {
	c := ChunkerComparison{Chunkers: chunkers}
	if len(slices.Compact(slices.Sorted(slices.Values(chunkers)))) < max(len(chunkers), 2) {
		return c, fmt.Errorf("chunkers %q: name at least two and each once, as in fixed/1,structure/1", chunkers)
	}
	dataset, err := Load(o.Dataset)
	if err != nil {
		return c, err
	}
	var base map[asked]ranks
	for _, chunker := range chunkers {
		one := o
		one.Chunker = chunker
		report, answers, err := answered(ctx, one)
		if err != nil {
			return c, fmt.Errorf("%s: %w", chunker, err)
		}
		c.Reports = append(c.Reports, report)
		if report.Outcome != Passed {
			return c, nil
		}
		its := ranksOf(answers)
		c.Whole = append(c.Whole, wholeOf(o.Strategies, its))
		if base == nil {
			base = its
		} else {
			c.Differences = append(c.Differences, compared(chunker, o.Strategies, dataset, base, its)...)
		}
	}
	return c, nil
}

// asked is one case by one strategy.
type asked struct{ id, strategy string }

// ranks are those of an answer: of what meets each item, and of what has all of it.
type ranks struct{ met, whole []int }

func ranksOf(answers []Answer) map[asked]ranks {
	all := map[asked]ranks{}
	for _, a := range answers {
		if len(a.EvidenceRanks) > 0 {
			all[asked{a.Case, a.Strategy}] = ranks{a.EvidenceRanks, a.WholeRanks}
		}
	}
	return all
}

// wholeDepth and wholeName are of the share of the items that one of the first
// results has whole: a chunker that cuts an item in two meets it twice.
const (
	wholeDepth = 6
	wholeName  = "whole_recall@6"
)

// wholeOf is the mean of that share by strategy.
func wholeOf(strategies []string, all map[asked]ranks) map[string]statistics.Estimate {
	estimates := map[string]statistics.Estimate{}
	for _, strategy := range strategies {
		var values []float64
		for at, r := range all {
			if at.strategy == strategy {
				values = append(values, statistics.Recall(r.whole, wholeDepth))
			}
		}
		slices.Sort(values)
		estimates[strategy] = statistics.Mean(values)
	}
	return estimates
}

// compared compares ranks with those of the baseline, by strategy and tag.
func compared(chunker string, strategies []string, d *Dataset, base, its map[asked]ranks) []Difference {
	var all []Difference
	for _, strategy := range strategies {
		pairs := pairsByTag(d, strategy, base, its)
		for _, tag := range slices.Sorted(maps.Keys(pairs)) {
			all = append(all, Difference{chunker, strategy, tag, len(pairs[tag]), meanDifferences(pairs[tag], metricsOf(d.Cutoffs))})
		}
	}
	return all
}

// pairsByTag are the ranks of the answerable cases, the baseline's first.
func pairsByTag(d *Dataset, strategy string, base, its map[asked]ranks) map[string][][2]ranks {
	pairs := map[string][][2]ranks{}
	for _, c := range d.Cases {
		at := asked{c.ID, strategy}
		if its[at].met == nil {
			continue
		}
		for _, tag := range append([]string{""}, c.Tags...) {
			pairs[tag] = append(pairs[tag], [2]ranks{base[at], its[at]})
		}
	}
	return pairs
}

func meanDifferences(pairs [][2]ranks, metrics []Metric) map[string]statistics.Estimate {
	means := map[string]statistics.Estimate{
		wholeName: statistics.Mean(differences(pairs, func(r ranks) float64 { return statistics.Recall(r.whole, wholeDepth) })),
	}
	for _, m := range metrics {
		means[m.Name] = statistics.Mean(differences(pairs, func(r ranks) float64 { return m.Of(r.met) }))
	}
	return means
}

// differences of a figure between the second and the first of each pair.
func differences(pairs [][2]ranks, of func(ranks) float64) []float64 {
	values := make([]float64, len(pairs))
	for i, p := range pairs {
		values[i] = of(p[1]) - of(p[0])
	}
	return values
}

// Outcome is that of the last run: all before it passed.
func (c ChunkerComparison) Outcome() Report { return c.Reports[len(c.Reports)-1] }
