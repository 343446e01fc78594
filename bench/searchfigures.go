package bench

import (
	"fmt"
	"math"
	"slices"

	"sluice/bench/figures"
)

// recordBuilds records what building the peers' indexes took, and ours beside hnswlib.
func (b *searchBench) recordBuilds() {
	for name, peer := range b.peers.found {
		b.Figures[name+".build_cpu_s"] = peer.Build
		b.Figures[name+".bytes_per_vector"] = peer.Bytes / float64(b.vectors.count())
	}
	if peer, found := b.peers.found["hnswlib"]; found {
		b.Figures["ratio.build_to_hnswlib"] = b.Figures["build_cpu_s"] / peer.Build
	}
}

// report records the figures of a contestant at a point.
func (b *searchBench) report(name string, turns []searchTurn, recall float64) {
	rates := each(turns, searchTurn.rate)
	b.Figures[name+".recall@10"] = recall
	b.Median(name+".qps", rates)
	b.Median(name+".queries_per_cpu_s", each(turns, searchTurn.perCPU))
	b.percentiles(name, "_ms", turns, func(t searchTurn) []float64 { return t.Times })
	b.percentiles(name, "_cpu_ms", turns, func(t searchTurn) []float64 { return t.CPUTimes })
	fmt.Fprintf(b.Log, "%-42s recall %.4f, %7.0f QPS (%.0f to %.0f), %.0f per CPU s, p50 %.3f ms, p95 %.3f ms, in CPU time %.3f, %.3f\n", name, recall,
		figures.MedianOf(rates), slices.Min(rates), slices.Max(rates), b.Figures[name+".queries_per_cpu_s"], b.Figures[name+".p50_ms"],
		b.Figures[name+".p95_ms"], b.Figures[name+".p50_cpu_ms"], b.Figures[name+".p95_cpu_ms"])
}

func (b *searchBench) percentiles(name, unit string, turns []searchTurn, of func(searchTurn) []float64) {
	var all []float64
	for _, t := range turns {
		all = append(all, of(t)...)
	}
	slices.Sort(all)
	b.Figures[name+".p50"+unit] = 1000 * all[len(all)/2]
	b.Figures[name+".p95"+unit] = 1000 * all[len(all)*95/100]
}

// comparison is ours beside the best peer of those that reach a target.
type comparison struct {
	peer       string
	qps        float64   // the peer's
	rates, cpu []float64 // ours over the peer's, by round
	p95        float64   // the same, in CPU time
}

// compare records the peers' figures at a point. The comparisons are by target;
// nil: no peer reaches it.
func (b *searchBench) compare(p *point, ours, entrants []*entrant) []*comparison {
	compared := make([]*comparison, len(targets))
	for i, target := range targets {
		var best *entrant
		for _, e := range first(entrants, target.recall) {
			name := e.peer + "." + p.name + target.suffix
			b.report(name, e.turns, e.recall)
			b.Figures[name+".setting"] = float64(e.setting)
			if best == nil || e.rate() > best.rate() {
				best = e
			}
		}
		if best == nil {
			continue
		}
		name := best.peer + "." + p.name + target.suffix
		compared[i] = &comparison{
			best.peer, b.Figures[name+".qps"],
			quotients(each(ours[i].turns, searchTurn.rate), each(best.turns, searchTurn.rate)),
			quotients(each(ours[i].turns, searchTurn.perCPU), each(best.turns, searchTurn.perCPU)),
			b.Figures["sluice."+p.name+target.suffix+".p95_cpu_ms"] / b.Figures[name+".p95_cpu_ms"],
		}
		b.record(p.name, target.suffix, compared[i])
	}
	return compared
}

func (b *searchBench) record(place, suffix string, c *comparison) {
	b.Figures["best_peer."+place+".qps"+suffix] = c.qps
	b.Spread("ratio."+place+".qps_to_best_peer"+suffix, c.rates)
	b.Spread("ratio.cpu."+place+".qps_to_best_peer"+suffix, c.cpu)
	b.Figures["ratio."+place+".p95_cpu_to_best_peer"+suffix] = c.p95
	fmt.Fprintf(b.Log, "%-42s ours %.2f × %s (%.2f to %.2f), in CPU time %.2f × (%.2f to %.2f), p95 %.2f ×\n", place+suffix, figures.MedianOf(c.rates), c.peer,
		slices.Min(c.rates), slices.Max(c.rates), figures.MedianOf(c.cpu), slices.Min(c.cpu), slices.Max(c.cpu), c.p95)
}

// recordWorse records, of the points of one share, ours where they are worst,
// and the comparison where the ratio in CPU time is least.
func (b *searchBench) recordWorse(place string, points []string, compared [][]*comparison) {
	for i, target := range targets {
		b.recordOwn(place, target.suffix, points)
		var worst *comparison
		for _, c := range compared {
			if c[i] != nil && (worst == nil || figures.MedianOf(c[i].cpu) < figures.MedianOf(worst.cpu)) {
				worst = c[i]
			}
		}
		if worst != nil {
			b.record(place, target.suffix, worst)
		}
	}
}

// recordOwn records the worst figures of ours at the points of one share.
func (b *searchBench) recordOwn(place, suffix string, points []string) {
	for name, worse := range map[string]func(a, b float64) float64{
		".recall@10": math.Min, ".qps": math.Min, ".queries_per_cpu_s": math.Min,
		".p50_ms": math.Max, ".p95_ms": math.Max, ".p50_cpu_ms": math.Max, ".p95_cpu_ms": math.Max,
	} {
		value := b.Figures["sluice."+points[0]+suffix+name]
		for _, p := range points[1:] {
			value = worse(value, b.Figures["sluice."+p+suffix+name])
		}
		b.Figures[place+suffix+name] = value
	}
}
