package eval

import (
	"fmt"
	"strings"
)

// shownChanges bounds the lists of cases; the figures count all.
const shownChanges = 20

// Figures are "<name>.<metric>.difference" with ".low", ".high", ".p" and
// ".holm", and the number of cases that gain and lose.
func (c Contrasts) Figures() map[string]float64 {
	values := map[string]float64{}
	for _, one := range c.All {
		name := strings.ReplaceAll(one.Name, " − ", ".minus.") + "." + c.Metric.Name
		putEstimate(values, name+".difference", one.Difference)
		values[name+".p"], values[name+".holm"] = one.P, one.Holm
		values[name+".better"], values[name+".worse"] = float64(len(one.Better)), float64(len(one.Worse))
	}
	return values
}

// Markdown is the comparison for readers.
func (c Contrasts) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Compared | Cases | %s, first | second | Difference, 95 %% | p | p (Holm) | | p50 ms, first | second | p |\n|%s\n", c.Metric.Name, strings.Repeat(" --- |", 11))
	for _, one := range c.All {
		d := one.Difference
		fmt.Fprintf(&b, "| %s | %d | %.3f | %.3f | %+.3f [%+.3f, %+.3f] | %.4f | %.4f | %s | %.2f | %.2f | %.4f |\n", one.Name, one.Cases, one.First, one.Second,
			d.Mean, d.Low, d.High, one.P, one.Holm, one.Verdict(), one.FirstP50, one.SecondP50, one.LatencyP)
	}
	for _, one := range c.All {
		writeChanges(&b, one.Name+": better", one.Better)
		writeChanges(&b, one.Name+": worse", one.Worse)
	}
	return b.String()
}

func writeChanges(b *strings.Builder, title string, changes []Change) {
	if len(changes) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s, %d cases\n\n", title, len(changes))
	for i, change := range changes {
		if i == shownChanges {
			fmt.Fprintf(b, "- … and %d more\n", len(changes)-i)
			return
		}
		fmt.Fprintf(b, "- %s: %.3f → %.3f, ranks %v → %v\n", change.Case, change.First, change.Second, change.FirstRanks, change.SecondRanks)
	}
}
