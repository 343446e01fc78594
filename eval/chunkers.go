package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/bench/figures"
)

// Comparison is the same run by several chunkers: the first is the baseline,
// the others are compared with it case by case.
type Comparison struct {
	Chunkers []string
	Reports  []Report // one a chunker
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
	Metrics  map[string]Estimate
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
	var base map[asked][]int
	for _, chunker := range chunkers {
		one := o
		one.Chunker, one.Out, one.JSON = chunker, "", ""
		report, answers, err := answered(ctx, one)
		if err != nil {
			return c, fmt.Errorf("%s: %w", chunker, err)
		}
		c.Reports = append(c.Reports, report)
		if report.Outcome != Passed {
			return c, nil
		}
		if ranks := ranksOf(answers); base == nil {
			base = ranks
		} else {
			c.Gains = append(c.Gains, gains(chunker, o.Strategies, dataset, base, ranks)...)
		}
	}
	if o.JSON == "" {
		return c, nil
	}
	return c, c.Figures(o.Command).Write(o.JSON)
}

// asked is one case by one strategy.
type asked struct{ id, strategy string }

func ranksOf(answers []Answer) map[asked][]int {
	ranks := map[asked][]int{}
	for _, a := range answers {
		if len(a.EvidenceRanks) > 0 {
			ranks[asked{a.Case, a.Strategy}] = a.EvidenceRanks
		}
	}
	return ranks
}

// gains compares ranks with those of the baseline, by strategy and tag.
func gains(chunker string, strategies []string, d *Dataset, base, ranks map[asked][]int) []Gain {
	var all []Gain
	for _, strategy := range strategies {
		pairs := map[string][][2][]int{}
		for _, c := range d.Cases {
			at := asked{c.ID, strategy}
			if ranks[at] == nil {
				continue
			}
			for _, tag := range append([]string{""}, c.Tags...) {
				pairs[tag] = append(pairs[tag], [2][]int{base[at], ranks[at]})
			}
		}
		for _, tag := range slices.Sorted(maps.Keys(pairs)) {
			g := Gain{chunker, strategy, tag, len(pairs[tag]), map[string]Estimate{}}
			for _, m := range metricsOf(d.Cutoffs) {
				g.Metrics[m.Name] = estimate(m.differences(pairs[tag]))
			}
			all = append(all, g)
		}
	}
	return all
}

// differences of the metric between the second and the first ranks of each pair.
func (m Metric) differences(pairs [][2][]int) []float64 {
	values := make([]float64, len(pairs))
	for i, p := range pairs {
		values[i] = m.Of(p[1]) - m.Of(p[0])
	}
	return values
}

// Outcome is that of the last run: all before it passed.
func (c Comparison) Outcome() Report { return c.Reports[len(c.Reports)-1] }

// Figures are "<chunker>.<strategy>.<metric>" of every run and
// "<chunker>.minus.<baseline>.<strategy>.<metric>" of every gain, with ".low" and
// ".high"; without a strategy, of the last one.
func (c Comparison) Figures(command string) figures.File {
	file := figures.File{Command: command, Figures: map[string]float64{}}
	for i, r := range c.Reports {
		own := r.Figures()
		file.Commit, file.Environment = own.Commit, own.Environment
		for name, value := range own.Figures {
			file.Figures[c.Chunkers[i]+"."+name] = value
		}
	}
	last := c.Reports[0].Strategies[len(c.Reports[0].Strategies)-1].Strategy
	for _, g := range c.Gains {
		minus := g.Chunker + ".minus." + c.Chunkers[0]
		put(file.Figures, strings.TrimSuffix(minus+"."+g.Strategy+"."+g.Tag, "."), g.Metrics)
		if g.Strategy == last {
			put(file.Figures, strings.TrimSuffix(minus+"."+g.Tag, "."), g.Metrics)
		}
	}
	return file
}

func put(values map[string]float64, name string, metrics map[string]Estimate) {
	for metric, e := range metrics {
		values[name+"."+metric] = e.Mean
		values[name+"."+metric+".low"] = e.Low
		values[name+"."+metric+".high"] = e.High
	}
}

// Markdown is the comparison for readers.
func (c Comparison) Markdown() string {
	var b strings.Builder
	names := c.Reports[0].metricNames()
	fmt.Fprintf(&b, "# Chunkers on %s\n\n| Chunker | Strategy | %s |\n|%s\n", c.Reports[0].Dataset, strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+2))
	for i, r := range c.Reports {
		for _, s := range r.Strategies {
			fmt.Fprintf(&b, "| %s | %s |", c.Chunkers[i], s.Strategy)
			for _, name := range names {
				fmt.Fprintf(&b, " %.3f |", s.Metrics[name].Mean)
			}
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
