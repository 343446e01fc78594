package eval

import (
	"fmt"
	"strings"

	"sluice/statistics"
)

// Figures are "<chunker>.<strategy>.<metric>" of every run and
// "<chunker>.minus.<baseline>.<strategy>.<metric>" of every difference, with ".low" and
// ".high"; without a strategy, of the last one.
func (c ChunkerComparison) Figures() map[string]float64 {
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
	for _, d := range c.Differences {
		minus := d.Chunker + ".minus." + c.Chunkers[0]
		put(values, strings.TrimSuffix(minus+"."+d.Strategy+"."+d.Tag, "."), d.Metrics)
		if d.Strategy == last {
			put(values, strings.TrimSuffix(minus+"."+d.Tag, "."), d.Metrics)
		}
	}
	return values
}

func put(values map[string]float64, name string, metrics map[string]statistics.Estimate) {
	for metric, e := range metrics {
		putEstimate(values, name+"."+metric, e)
	}
}

// shownMetrics are those of the tables.
var shownMetrics = []string{"recall@6", "recall@10", "ndcg@10", wholeName}

// Markdown is the comparison for readers.
func (c ChunkerComparison) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Chunkers on %s\n\n", c.Reports[0].Dataset)
	c.writeRuns(&b)
	fmt.Fprintf(&b, "\nDifferences from %s, case by case, with 95 %% bootstrap intervals.\n\n", c.Chunkers[0])
	c.writeDifferences(&b)
	return b.String()
}

func (c ChunkerComparison) writeRuns(b *strings.Builder) {
	writeHead(b, "Chunker", "Strategy")
	for i, r := range c.Reports {
		for _, s := range r.Strategies {
			fmt.Fprintf(b, "| %s | %s |", c.Chunkers[i], s.Strategy)
			for _, name := range shownMetrics {
				e := s.Metrics[name]
				if name == wholeName {
					e = c.Whole[i][s.Strategy]
				}
				fmt.Fprintf(b, " %.3f |", e.Mean)
			}
			b.WriteString("\n")
		}
	}
}

func (c ChunkerComparison) writeDifferences(b *strings.Builder) {
	writeHead(b, "Chunker", "Strategy", "Tag", "Cases")
	for _, d := range c.Differences {
		fmt.Fprintf(b, "| %s | %s | %s | %d |", d.Chunker, d.Strategy, d.Tag, d.Cases)
		for _, name := range shownMetrics {
			e := d.Metrics[name]
			fmt.Fprintf(b, " %+.3f [%+.3f, %+.3f] |", e.Mean, e.Low, e.High)
		}
		b.WriteString("\n")
	}
}

// writeHead begins a table of these columns and shownMetrics.
func writeHead(b *strings.Builder, columns ...string) {
	columns = append(columns, shownMetrics...)
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}
