package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/statistics"
)

// Comparison is the same run by several chunkers: the first is the baseline,
// the others are compared with it case by case.
type Comparison struct {
	Chunkers []string
	Reports  []Report                         // one a chunker
	Whole    []map[string]statistics.Estimate // "whole_recall@6" of each chunker, by strategy
	Gains    []Gain
}

// Gain is by how much one chunker's answers by one strategy are better than the
// baseline's: the mean of the differences, with its paired interval. Tag "": over
// all answerable cases.
type Gain struct {
	Chunker  string
	Strategy string
	Tag      string
	Cases    int
	Metrics  map[string]statistics.Estimate
}

// Compare runs the gate once by each chunker, each time on a service of its own.
// It stops at the first run that does not pass.
func Compare(ctx context.Context, o Options, chunkers []string) (Comparison, error) {
	c := Comparison{Chunkers: chunkers}
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
			c.Gains = append(c.Gains, gains(chunker, o.Strategies, dataset, base, its)...)
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

// gains compares ranks with those of the baseline, by strategy and tag.
func gains(chunker string, strategies []string, d *Dataset, base, its map[asked]ranks) []Gain {
	var all []Gain
	for _, strategy := range strategies {
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
		for _, tag := range slices.Sorted(maps.Keys(pairs)) {
			g := Gain{chunker, strategy, tag, len(pairs[tag]), map[string]statistics.Estimate{}}
			for _, m := range metricsOf(d.Cutoffs) {
				g.Metrics[m.Name] = statistics.Mean(differences(pairs[tag], func(r ranks) float64 { return m.Of(r.met) }))
			}
			g.Metrics[wholeName] = statistics.Mean(differences(pairs[tag], func(r ranks) float64 { return statistics.Recall(r.whole, wholeDepth) }))
			all = append(all, g)
		}
	}
	return all
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
func (c Comparison) Outcome() Report { return c.Reports[len(c.Reports)-1] }

// Figures are "<chunker>.<strategy>.<metric>" of every run and
// "<chunker>.minus.<baseline>.<strategy>.<metric>" of every gain, with ".low" and
// ".high"; without a strategy, of the last one.
func (c Comparison) Figures() map[string]float64 {
	values := map[string]float64{}
	for i, r := range c.Reports {
		for name, value := range r.Figures() {
			values[c.Chunkers[i]+"."+name] = value
		}
		for strategy, e := range c.Whole[i] {
			put(values, c.Chunkers[i]+"."+strategy, map[string]statistics.Estimate{wholeName: e})
		}
	}
	last := c.Reports[0].Strategies[len(c.Reports[0].Strategies)-1].Strategy
	for _, g := range c.Gains {
		minus := g.Chunker + ".minus." + c.Chunkers[0]
		put(values, strings.TrimSuffix(minus+"."+g.Strategy+"."+g.Tag, "."), g.Metrics)
		if g.Strategy == last {
			put(values, strings.TrimSuffix(minus+"."+g.Tag, "."), g.Metrics)
		}
	}
	return values
}

func put(values map[string]float64, name string, metrics map[string]statistics.Estimate) {
	for metric, e := range metrics {
		putEstimate(values, name+"."+metric, e)
	}
}

// Markdown is the comparison for readers.
func (c Comparison) Markdown() string {
	var b strings.Builder
	names := []string{"recall@6", "recall@10", "ndcg@10", wholeName}
	fmt.Fprintf(&b, "# Chunkers on %s\n\n| Chunker | Strategy | %s |\n|%s\n", c.Reports[0].Dataset, strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+2))
	for i, r := range c.Reports {
		for _, s := range r.Strategies {
			fmt.Fprintf(&b, "| %s | %s |", c.Chunkers[i], s.Strategy)
			for _, name := range names[:len(names)-1] {
				fmt.Fprintf(&b, " %.3f |", s.Metrics[name].Mean)
			}
			fmt.Fprintf(&b, " %.3f |", c.Whole[i][s.Strategy].Mean)
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "\nDifferences from %s, case by case, with 95 %% bootstrap intervals.\n\n| Chunker | Strategy | Tag | Cases | %s |\n|%s\n",
		c.Chunkers[0], strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+4))
	for _, g := range c.Gains {
		fmt.Fprintf(&b, "| %s | %s | %s | %d |", g.Chunker, g.Strategy, g.Tag, g.Cases)
		for _, name := range names {
			e := g.Metrics[name]
			fmt.Fprintf(&b, " %+.3f [%+.3f, %+.3f] |", e.Mean, e.Low, e.High)
		}
		b.WriteString("\n")
	}
	return b.String()
}
