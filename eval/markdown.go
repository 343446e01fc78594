package eval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// shownFindings bounds the list in report.md; run.json has all.
const shownFindings = 100

// Markdown is the report for readers.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Evaluation on %s: %s\n\n", r.Dataset, r.Outcome)
	r.writeRun(&b)
	r.writeFindings(&b)
	if len(r.Strategies) == 0 {
		b.WriteString("\nNo search was judged: the run stopped at the listings.\n")
		return b.String()
	}
	r.writeProbes(&b)
	r.writeRelevance(&b)
	r.writeLatency(&b)
	r.writeAssociations(&b)
	r.writeTags(&b)
	return b.String()
}

func (r Report) writeRun(b *strings.Builder) {
	b.WriteString("| | |\n| --- | --- |\n")
	for _, row := range [][2]string{
		{"Split", cmp.Or(r.Split, "all")},
		{"Documents", fmt.Sprint(r.Documents)},
		{"Cases", fmt.Sprintf("%d, of them %d answerable", r.Cases, r.Answerable)},
		{"Results asked for", fmt.Sprint(r.Depth)},
		{"Data set digest", r.Digest},
		{"Commit", r.Commit},
		{"Model", cmp.Or(r.Model, "unknown")},
		{"Machine", fmt.Sprintf("%s, %d cores; GPU %s; kernels %s; %s; %s", r.Environment.CPU, r.Environment.Cores,
			r.Environment.GPU, cmp.Or(r.Environment.Kernels, "unknown"), r.Environment.OS, r.Environment.Go)},
		{"Date", r.Date.Format(time.RFC3339)},
		{"Command", "`" + r.Command + "`"},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row[0], row[1])
	}
	for _, strategy := range slices.Sorted(maps.Keys(r.Plans)) {
		fmt.Fprintf(b, "| Plan of %s | %s |\n", strategy, strings.Join(r.Plans[strategy], ", "))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "| Note | %s |\n", note)
	}
}

func (r Report) writeFindings(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Gate\n\n%d leaks, %d scope failures, %d degraded responses, %d disagreements with the labels.\n",
		count(r.Findings, Leak), count(r.Findings, ScopeFailure), count(r.Findings, Degraded), count(r.Findings, Disagreement))
	for i, f := range r.Findings {
		if i == shownFindings {
			fmt.Fprintf(b, "- … and %d more in run.json\n", len(r.Findings)-i)
			return
		}
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- %s\n", f)
	}
}

func (r Report) writeProbes(b *strings.Builder) {
	if r.Probes == nil {
		return
	}
	fmt.Fprintf(b, "\n## Probes\n\n%d asked, each with the words of a document that the asker may not see; %d answers differ from those of a service on which nothing of the kind exists.\n\n", r.Probes.Asked, r.Probes.Failures)
	b.WriteString("| | p50 ms, the document there | not there | p (Mann–Whitney) |\n| --- | --- | --- | --- |\n")
	for _, t := range r.Probes.Timings {
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.3f |\n", t.Strategy, t.With, t.Without, t.P)
	}
}

func (r Report) writeRelevance(b *strings.Builder) {
	names := r.metricNames()
	fmt.Fprintf(b, "\n## Relevance\n\nMean over the %d answerable cases, 95 %% bootstrap interval in brackets.\n\n| Strategy | %s |\n|%s\n",
		r.Answerable, strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+1))
	for _, s := range r.Strategies {
		fmt.Fprintf(b, "| %s |", s.Strategy)
		for _, name := range names {
			e := s.Metrics[name]
			fmt.Fprintf(b, " %.3f [%.3f, %.3f] |", e.Mean, e.Low, e.High)
		}
		b.WriteString("\n")
	}
}

func (r Report) metricNames() []string {
	return slices.Sorted(maps.Keys(r.Strategies[0].Metrics))
}

func (r Report) writeLatency(b *strings.Builder) {
	b.WriteString("\n## Latency\n\nOne search at a time, as the client sees it.\n\n| Strategy | mean ms | p50 ms | p95 ms |\n| --- | --- | --- | --- |\n")
	for _, s := range r.Strategies {
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.2f |\n", s.Strategy, s.Mean, s.P50, s.P95)
	}
	for _, s := range r.Strategies {
		if s.Strategy == auto {
			fmt.Fprintf(b, "\n%s chose sparse for %.0f %%, hybrid for %.0f %% and hybrid-late for %.0f %% of the searches.\n",
				auto, 100*s.Routes["sparse"], 100*s.Routes["hybrid"], 100*s.Routes["hybrid-late"])
		}
	}
}

// writeTags has a row per tag and a column per strategy.
func (r Report) writeTags(b *strings.Builder) {
	b.WriteString("\n## nDCG@10 by tag\n\n| Tag | Cases |")
	for _, s := range r.Strategies {
		fmt.Fprintf(b, " %s |", s.Strategy)
	}
	fmt.Fprintf(b, "\n|%s\n", strings.Repeat(" --- |", len(r.Strategies)+2))
	for i, tag := range r.Strategies[0].Tags {
		fmt.Fprintf(b, "| %s | %d |", tag.Tag, tag.Cases)
		for _, s := range r.Strategies {
			fmt.Fprintf(b, " %.3f |", s.Tags[i].Metrics["ndcg@10"])
		}
		b.WriteString("\n")
	}
}
