package eval

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"sluice/statistics"
)

// Contrast is what two strategies, or two runs of one, make of the same cases.
type Contrast struct {
	Name       string  // the strategy; "hybrid − dense" between strategies of one run
	Cases      int     // answerable ones that both were asked
	First      float64 // mean of the metric
	Second     float64
	Difference statistics.Estimate // second − first, case by case
	P          float64             // two-sided, of the signs of the differences
	Holm       float64             // P adjusted for the number of contrasts
	Better     []Change            // cases, those that gain most first
	Worse      []Change
	FirstP50   float64 // ms
	SecondP50  float64
	LatencyP   float64 // Mann–Whitney, two-sided, of the latencies
}

// Change is a case whose value differs.
type Change struct {
	Case          string
	First, Second float64
	FirstRanks    []int
	SecondRanks   []int
}

// significant is the bound on adjusted p-values.
const significant = 0.05

// Verdict says in words whether the second is better.
func (c Contrast) Verdict() string {
	switch {
	case c.Holm >= significant:
		return "no detectable difference"
	case c.Difference.Mean > 0:
		return "better"
	}
	return "worse"
}

// Contrasts are several comparisons by one metric, as one family of tests.
type Contrasts struct {
	Metric Metric
	All    []Contrast
}

// CompareRuns compares the strategies that two runs have in common. The runs must
// be of the same data set.
func CompareRuns(first, second Recorded, metric string) (Contrasts, error) {
	if first.Digest != second.Digest || first.Split != second.Split {
		return Contrasts{}, fmt.Errorf("the runs are of different cases: %s, split %q, and %s, split %q (or of another version of it)",
			first.Dataset, first.Split, second.Dataset, second.Split)
	}
	m, err := metricNamed(metric)
	if err != nil {
		return Contrasts{}, err
	}
	c := Contrasts{Metric: m}
	for _, strategy := range first.strategies() {
		if slices.Contains(second.strategies(), strategy) {
			c.add(strategy, first.of(strategy), second.of(strategy))
		}
	}
	return c.closed()
}

// CompareStrategies compares the strategies of a run with the one named.
func CompareStrategies(run Recorded, baseline, metric string) (Contrasts, error) {
	if !slices.Contains(run.strategies(), baseline) {
		return Contrasts{}, fmt.Errorf("the run has no strategy %q, only %q", baseline, run.strategies())
	}
	m, err := metricNamed(metric)
	if err != nil {
		return Contrasts{}, err
	}
	c := Contrasts{Metric: m}
	for _, strategy := range run.strategies() {
		if strategy != baseline {
			c.add(strategy+" − "+baseline, run.of(baseline), run.of(strategy))
		}
	}
	return c.closed()
}

func (c *Contrasts) add(name string, first, second []Answer) {
	if contrast := contrasted(c.Metric, first, second); contrast.Cases > 0 {
		contrast.Name = name
		c.All = append(c.All, contrast)
	}
}

// closed adjusts the p-values for all that was compared.
func (c Contrasts) closed() (Contrasts, error) {
	if len(c.All) == 0 {
		return c, errors.New("there is nothing to compare: no strategy and no answerable case in common")
	}
	p := make([]float64, len(c.All))
	for i := range c.All {
		p[i] = c.All[i].P
	}
	for i, adjusted := range statistics.Holm(p) {
		c.All[i].Holm = adjusted
	}
	return c, nil
}

// contrasted pairs the answers by case.
func contrasted(metric Metric, first, second []Answer) Contrast {
	theirs := map[string]Answer{}
	for _, a := range second {
		theirs[a.Case] = a
	}
	var c Contrast
	var a, b, differences []float64
	for _, one := range first {
		other, both := theirs[one.Case]
		if !both || len(one.EvidenceRanks) == 0 || len(other.EvidenceRanks) != len(one.EvidenceRanks) {
			continue
		}
		change := Change{one.Case, metric.Of(one.EvidenceRanks), metric.Of(other.EvidenceRanks), one.EvidenceRanks, other.EvidenceRanks}
		a, b, differences = append(a, change.First), append(b, change.Second), append(differences, change.by())
		c.note(change)
	}
	byMost := func(a, b Change) int { return cmp.Compare(math.Abs(b.by()), math.Abs(a.by())) }
	slices.SortStableFunc(c.Better, byMost)
	slices.SortStableFunc(c.Worse, byMost)
	c.Cases = len(differences)
	c.First, c.Second = statistics.Mean(a).Mean, statistics.Mean(b).Mean
	c.Difference, c.P = statistics.Mean(differences), statistics.SignFlip(differences)
	c.compareLatencies(first, second)
	return c
}

func (c Change) by() float64 { return c.Second - c.First }

func (c *Contrast) note(change Change) {
	switch by := change.by(); {
	case by > 0:
		c.Better = append(c.Better, change)
	case by < 0:
		c.Worse = append(c.Worse, change)
	}
}

func (c *Contrast) compareLatencies(first, second []Answer) {
	a, b := latencies(first), latencies(second)
	c.FirstP50, c.SecondP50 = statistics.Quantile(0.5, a), statistics.Quantile(0.5, b)
	c.LatencyP = statistics.MannWhitney(a, b)
}

func latencies(answers []Answer) []float64 {
	values := make([]float64, len(answers))
	for i, a := range answers {
		values[i] = a.LatencyMS
	}
	return values
}
