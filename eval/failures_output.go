package eval

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// stages in the order in which an item passes them.
var stages = []Stage{Denied, NotParsed, NotChunked, NotCandidate, LostInFusion, LostInRerank, RankedLow}

const failuresTitle = "# Misses on " // begins the report

// buckets counts the misses of a strategy by stage.
func (f Failures) buckets() map[string]map[Stage]int {
	counts := map[string]map[Stage]int{}
	for _, m := range f.Misses {
		if counts[m.Strategy] == nil {
			counts[m.Strategy] = map[Stage]int{}
		}
		counts[m.Strategy][m.Stage]++
	}
	return counts
}

// Figures are "<strategy>.misses" and "<strategy>.lost.<stage>".
func (f Failures) Figures() map[string]float64 {
	values := map[string]float64{"items": float64(f.Items)}
	for strategy, byStage := range f.buckets() {
		for stage, n := range byStage {
			values[strategy+".lost."+string(stage)] = float64(n)
			values[strategy+".misses"] += float64(n)
		}
	}
	return values
}

// Markdown is a table of buckets, then every miss in a line.
func (f Failures) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, failuresTitle+"%s: %d of %d items are not met by the first %d results\n\n| Strategy |", f.Dataset, len(f.Misses), f.Items, f.At)
	for _, stage := range stages {
		fmt.Fprintf(&b, " %s: %s |", layers[stage], stage)
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat(" --- |", len(stages)+1))
	buckets := f.buckets()
	for _, strategy := range slices.Sorted(maps.Keys(buckets)) {
		fmt.Fprintf(&b, "| %s |", strategy)
		for _, stage := range stages {
			fmt.Fprintf(&b, " %d |", buckets[strategy][stage])
		}
		b.WriteString("\n")
	}
	for i, m := range f.Misses {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", m)
	}
	return b.String()
}

// String is the miss in one line.
func (m Miss) String() string {
	line := fmt.Sprintf("%s, %s: %s (%s)", m.Case, m.Strategy, m.Stage, strings.Join(m.Documents, ", "))
	for _, leg := range slices.Sorted(maps.Keys(m.Legs)) {
		line += fmt.Sprintf(", %s %d", leg, m.Legs[leg])
	}
	if m.Pool > 0 {
		line += fmt.Sprintf(", pool %d", m.Pool)
	}
	if m.Cut {
		line += ", no chunk has all of the quote"
	}
	return line
}

// write writes report.md, and for every case with misses CASE.json with them.
func (f Failures) write(dir string) error {
	var d directory
	d.add("report.md", []byte(f.Markdown()))
	byCase := map[string][]Miss{}
	for _, m := range f.Misses {
		byCase[m.Case] = append(byCase[m.Case], m)
	}
	for id, misses := range byCase {
		d.addJSON(url.PathEscape(id)+".json", misses)
	}
	return d.write(dir)
}
