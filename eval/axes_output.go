package eval

import (
	"fmt"
	"strings"

	"sluice/statistics"
)

// Markdown is the report in tables.
func (a Axes) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Four axes\n\nCommit %s; `%s`\n", a.Commit, a.Command)
	a.writeParse(&b)
	a.writeIndex(&b)
	a.writeRetrieval(&b)
	a.writeGrounded(&b)
	a.writeBad(&b)
	if len(a.Associations) > 0 {
		b.WriteString("\n## How the stages go together\n")
		writeAssociations(&b, "Stage", a.Associations)
	}
	return b.String()
}

func (a Axes) writeParse(b *strings.Builder) {
	if len(a.Parse) == 0 {
		return
	}
	b.WriteString("\n## Parsing\n\nMeans over the files that have the part, with 95 % bootstrap intervals and their number. A file that is not read scores 0.\n\n" +
		"| Format | Files | Not read | Text | Tables (TEDS) | Captions (F1) | Order | Whole | Pages/s |\n|" + strings.Repeat(" --- |", 9) + "\n")
	for _, p := range a.Parse {
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s | %s | %s |\n", p.Format, p.Files, p.Failed, shown(p.Text, p.Files),
			shown(p.Tables, p.WithTables), shown(p.Captions, p.WithCaptions), shown(p.Order, p.WithOrder), shown(p.Whole, p.Files), p.speed())
	}
}

// speed in pages/s, of formats that have pages.
func (p ParseAxis) speed() string {
	if p.Pages == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(p.Pages)/p.Seconds)
}

// shown is an estimate over n values.
func shown(e statistics.Estimate, n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f] (%d)", e.Mean, e.Low, e.High, n)
}

func (a Axes) writeIndex(b *strings.Builder) {
	if a.Index == nil {
		return
	}
	i := a.Index
	fmt.Fprintf(b, "\n## Indexing\n\n| | |\n| --- | --- |\n| Pages of %d bytes of text | %.0f |\n| Build | %.1f s |\n| Pages/s | %.1f |\n| Bytes a page, on disk | %.0f |\n"+
		"| Dollars a page and year | %.3g, at %g an hour of the machine and %g a GB and month |\n",
		PageBytes, i.Pages, i.Seconds, i.PagesPerS, i.PageDisk, i.PageYear, i.Prices.Machine, i.Prices.Storage)
}

func (a Axes) writeRetrieval(b *strings.Builder) {
	if len(a.Retrieval) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Retrieval on %s, k = %d\n\n| Strategy | Kind | Hit@k | P@k | R@k | nDCG@k | MRR@k |\n|%s\n", a.Dataset, a.K, strings.Repeat(" --- |", 7))
	for _, m := range a.Retrieval {
		fmt.Fprintf(b, "| %s | %s |", m.Strategy, m.Tag)
		for _, e := range m.estimates() {
			fmt.Fprintf(b, " %s |", shown(e.Estimate, m.Cases))
		}
		b.WriteString("\n")
	}
}

type namedEstimate struct {
	name string
	statistics.Estimate
}

func (m Modality) estimates() []namedEstimate {
	return []namedEstimate{{"hit", m.Hit}, {"precision", m.Precision}, {"recall", m.Recall}, {"ndcg", m.NDCG}, {"mrr", m.MRR}}
}

func (a Axes) writeGrounded(b *strings.Builder) {
	if a.Grounded == nil {
		return
	}
	g := a.Grounded
	fmt.Fprintf(b, "\n## Groundedness\n\nModel: %s. %d answers with %d claims.\n\n| share | value |\n| --- | --- |\n| claims attributed | %s |\n| expected facts said | %s |\n",
		g.Model, g.Answers, g.Claims, shown(g.Attributed, g.Claims), shown(g.Complete, g.Counts.Answerable))
	for _, s := range g.Counts.shares() {
		fmt.Fprintf(b, "| %s | %s |\n", s.name, shown(statistics.Rate(s.of, s.in), s.in))
	}
}

// Figures are the report's numbers under their stable names.
func (a Axes) Figures() map[string]float64 {
	values := map[string]float64{}
	for _, p := range a.Parse {
		p.put(values)
	}
	if i := a.Index; i != nil {
		values["index.build_s"], values["index.pages_per_s"] = i.Seconds, i.PagesPerS
		values["index.page_bytes"], values["index.dollars_page_year"] = i.PageDisk, i.PageYear
	}
	for _, m := range a.Retrieval {
		for _, e := range m.estimates() {
			putEstimate(values, fmt.Sprintf("%s.%s.%s@%d", m.Strategy, m.Tag, e.name, a.K), e.Estimate)
		}
	}
	if g := a.Grounded; g != nil {
		values["grounded.claims"] = float64(g.Claims)
		putEstimate(values, "grounded.attributed", g.Attributed)
		putEstimate(values, "grounded.complete", g.Complete)
	}
	for place, n := range a.badCounts() {
		values["bad."+place.name()] = float64(n)
	}
	return values
}

func (p ParseAxis) put(values map[string]float64) {
	name := "parse." + p.Format
	values[name+".files"], values[name+".failed"] = float64(p.Files), float64(p.Failed)
	if p.Pages > 0 {
		values[name+".pages_per_s"] = float64(p.Pages) / p.Seconds
	}
	putEstimate(values, name+".text", p.Text)
	putEstimate(values, name+".whole", p.Whole)
	for _, part := range []struct {
		name string
		n    int // files that have it
		statistics.Estimate
	}{{"tables", p.WithTables, p.Tables}, {"captions", p.WithCaptions, p.Captions}, {"order", p.WithOrder, p.Order}} {
		if part.n > 0 {
			putEstimate(values, name+"."+part.name, part.Estimate)
		}
	}
}

// write writes axes.json and report.md, and what was read badly into the folder bad.
func (a Axes) write(dir string) error {
	if err := a.writeBadFiles(dir); err != nil {
		return err
	}
	var d directory
	d.addJSON("axes.json", a)
	d.add("report.md", []byte(a.Markdown()))
	return d.write(dir)
}
