package eval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shownPoints bounds the table of points; sweep.json has all.
const shownPoints = 15

// Figures are those of the chosen point: "dev.<data set>.ndcg@10" and, of its one
// test run, "test.<data set>.<metric>"; with the counts of findings.
func (s Sweep) Figures() map[string]float64 {
	values := map[string]float64{"points": float64(len(s.Points)), "dev.ndcg@10": s.Chosen.Mean, "dev.best.ndcg@10": s.Best.Mean}
	for name, value := range s.Chosen.NDCG {
		values["dev."+name+".ndcg@10"] = value
	}
	for _, r := range s.Tests {
		for name, value := range r.Figures() {
			values["test."+r.Dataset+"."+name] = value
		}
	}
	return values
}

// Markdown has the best points, the chosen one, and its test run.
func (s Sweep) Markdown() string {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(s.Best.NDCG))
	fmt.Fprintf(&b, "# Sweep of %d points, nDCG@10 on dev\n\n| Point | mean | %s | p50 ms | behind the best | p |\n|%s\n", len(s.Points), strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+5))
	ranked := slices.SortedStableFunc(slices.Values(s.Points), func(a, b Measured) int { return cmp.Compare(b.Mean, a.Mean) })
	for _, p := range ranked[:min(shownPoints, len(ranked))] {
		p.writeRow(&b, names)
	}
	fmt.Fprintf(&b, "\nThe best of each strategy:\n\n| Point | mean | %s | p50 ms | behind the best | p |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+5))
	shown := map[string]bool{}
	for _, p := range ranked {
		if !shown[p.Strategy] {
			p.writeRow(&b, names)
		}
		shown[p.Strategy] = true
	}
	fmt.Fprintf(&b, "\nChosen, as the first that is not detectably worse than the best: %s (%.3f, p %.3f)\n\n| Test split of | leaks | scope failures | nDCG@10 |\n| --- | --- | --- | --- |\n", s.Chosen.Point, s.Chosen.Mean, s.Chosen.P)
	for _, r := range s.Tests {
		fmt.Fprintf(&b, "| %s | %d | %d |", r.Dataset, count(r.Findings, Leak), count(r.Findings, ScopeFailure))
		for _, one := range r.Strategies {
			e := one.Metrics["ndcg@10"]
			fmt.Fprintf(&b, " %.3f [%.3f, %.3f]", e.Mean, e.Low, e.High)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func (p Measured) writeRow(b *strings.Builder, names []string) {
	fmt.Fprintf(b, "| %s | %.3f |", p.Point, p.Mean)
	for _, name := range names {
		fmt.Fprintf(b, " %.3f |", p.NDCG[name])
	}
	fmt.Fprintf(b, " %.2f | %.3f | %.3f |\n", p.P50, p.Behind, p.P)
}

// write writes sweep.json and report.md.
func (s Sweep) write(dir string) error {
	var d directory
	d.addJSON("sweep.json", s)
	d.add("report.md", []byte(s.Markdown()))
	return d.write(dir)
}
