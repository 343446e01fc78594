package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/statistics"
)

// share is a proportion.
type share struct {
	name   string
	of, in int // of these, in that many
}

// shares are the proportions of a report; those in nothing are left out.
func (c AnswerCounts) shares() []share {
	all := []share{
		{"answered", c.Answered, c.Answerable},
		{"refused", c.Refused, c.Refusals},
		{"abstention.precision", c.Refused, c.Abstained},
		{"abstention.recall", c.Refused, c.Refusals},
		{"citations.valid", c.Citations - c.ToNothing, c.Citations},
		{"attribution.precision", c.Attesting, c.Attested},
		{"attribution.recall", c.EvidenceCited, c.Evidence},
		{"facts.recall", c.FactsSaid, c.Facts},
		{"complete", c.Grades[3], c.Answered},
		{"accurate", c.Accurate, c.Claims},
		{"hallucinating.answers", c.Unsupported, c.Answers},
		{"hallucinating.documents", marks(c.Documents), len(c.Documents)},
		{"planted.said", c.PlantedSaid, c.Planted},
		{"judge.precision", c.SaidRightly, c.Said},
		{"judge.recall", c.WantedSaid, c.Wanted},
		{"judge.hallucinating.answers", c.Inventing, c.Judged},
		{"judge.hallucinating.documents", marks(c.JudgedDocuments), len(c.JudgedDocuments)},
	}
	return slices.DeleteFunc(all, func(s share) bool { return s.in == 0 })
}

func marks(documents map[string]bool) (n int) {
	for _, marked := range documents {
		if marked {
			n++
		}
	}
	return n
}

// F1 of the facts that the judge counts; 0 without a judge.
func (c AnswerCounts) F1() float64 {
	if c.SaidRightly == 0 || c.WantedSaid == 0 {
		return 0
	}
	precision, recall := float64(c.SaidRightly)/float64(c.Said), float64(c.WantedSaid)/float64(c.Wanted)
	return 2 * precision * recall / (precision + recall)
}

func (r *AnswerReport) summarize(cases []AnswerCase) {
	var latencies []float64
	for _, c := range cases {
		latencies = append(latencies, c.LatencyMS)
	}
	r.P50, r.P95 = statistics.Quantile(.5, latencies), statistics.Quantile(.95, latencies)
	r.Outcome = outcomeOf(r.Findings)
}

// Figures are the report's numbers under their stable names.
func (r AnswerReport) Figures() map[string]float64 {
	values := map[string]float64{
		"leaks": float64(count(r.Findings, Leak)), "scope_failures": float64(count(r.Findings, ScopeFailure)), "degraded": float64(count(r.Findings, Degraded)),
		"unfounded": float64(count(r.Findings, Unfounded)), "answerable": float64(r.Counts.Answerable), "refusals": float64(r.Counts.Refusals),
		"answered": float64(r.Counts.Answered), "refused": float64(r.Counts.Refused), "citations_to_nothing": float64(r.Counts.ToNothing),
		"planted_said": float64(r.Counts.PlantedSaid), "p50_ms": r.P50, "p95_ms": r.P95, "tokens": float64(r.Tokens), "cost": r.Cost,
	}
	putShares(values, "", r.Counts)
	for _, g := range r.Contexts {
		putShares(values, "context."+g.UpTo+".", g.Counts)
	}
	for i, n := range r.Counts.Grades {
		values[fmt.Sprintf("completeness.%d", i)] = float64(n)
	}
	if r.Counts.Judged > 0 {
		values["judge.f1"] = r.Counts.F1()
	}
	for reason, n := range r.Dropped {
		values["dropped."+reason] = float64(n)
	}
	return values
}

func putShares(values map[string]float64, prefix string, c AnswerCounts) {
	for _, s := range c.shares() {
		putEstimate(values, prefix+"share."+s.name, statistics.Rate(s.of, s.in))
	}
}

// cases that are in the group.
func (g ContextGroup) cases() int { return g.Counts.Answerable + g.Counts.Refusals }

// Markdown is the report in tables.
func (r AnswerReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Answers: %s, split %q: %s\n\nModel: %s\n\n", r.Dataset, r.Split, r.Outcome, r.Model)
	fmt.Fprintf(&b, "| share | of | in | value | 95 %% |\n|---|---|---|---|---|\n")
	for _, s := range r.Counts.shares() {
		e := statistics.Rate(s.of, s.in)
		fmt.Fprintf(&b, "| %s | %d | %d | %.3f | %.3f–%.3f |\n", s.name, s.of, s.in, e.Mean, e.Low, e.High)
	}
	r.writeContexts(&b)
	g := r.Counts.Grades
	fmt.Fprintf(&b, "\nCompleteness of the answered cases: %d none, %d some, %d most, %d all of the facts\n", g[0], g[1], g[2], g[3])
	if r.Judge != "" {
		fmt.Fprintf(&b, "Facts by %s: F1 %.3f; %d answers judged, %d not\n", r.Judge, r.Counts.F1(), r.Counts.Judged, r.Counts.JudgeFailed)
	}
	fmt.Fprintf(&b, "\nDropped: %s\nRefused: %s\nLatency: p50 %.1f ms, p95 %.1f ms; %d tokens, cost %.4f\n", tally(r.Dropped), tally(r.Reasons), r.P50, r.P95, r.Tokens, r.Cost)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\n- %s", f)
	}
	b.WriteString("\n")
	return b.String()
}

// byContext are the shares that are worth a column by the length of context.
var byContext = []string{"answered", "refused", "attribution.precision", "attribution.recall", "facts.recall", "accurate", "hallucinating.answers", "hallucinating.documents", "judge.precision", "judge.recall"}

// writeContexts writes a line for each length of context that occurs.
func (r AnswerReport) writeContexts(b *strings.Builder) {
	fmt.Fprintf(b, "\n| tokens of context, up to | cases | %s |\n|%s\n", strings.Join(byContext, " | "), strings.Repeat("---|", 2+len(byContext)))
	for _, g := range r.Contexts {
		if g.cases() == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %d |", g.UpTo, g.cases())
		shares := g.Counts.shares()
		for _, name := range byContext {
			cell := ""
			if i := slices.IndexFunc(shares, func(s share) bool { return s.name == name }); i >= 0 {
				e := statistics.Rate(shares[i].of, shares[i].in)
				cell = fmt.Sprintf("%.3f (%.3f–%.3f)", e.Mean, e.Low, e.High)
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		fmt.Fprintln(b)
	}
}

func tally(counts map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(all, ", ")
}
