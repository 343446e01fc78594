package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sluice/bench/figures"
	"sluice/bench/load"
	"sluice/kernels/simd"
)

// recorder takes figures down, and says them.
type recorder struct {
	figures.File
	log io.Writer
}

func newRecorder(ctx context.Context, log io.Writer) recorder {
	return recorder{figures.New(ctx, simd.Best().Level), log}
}

var quantiles = []struct {
	name string
	of   float64
}{{"p50", .5}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}}

// report records and prints the figures of a service under a load.
func (r recorder) report(name string, turns []served) {
	latency := merged(turns, latencyOf)
	r.parts(name, turns)
	r.Series[name] = series(turns)
	for _, q := range quantiles {
		figure := name + "." + q.name + "_ms"
		r.Rounds[figure] = perRound(turns, func(t load.Result) float64 { return milliseconds(t.Latency.Quantile(q.of)) })
		r.Figures[figure] = milliseconds(latency.Quantile(q.of))
	}
	r.Figures[name+".max_ms"] = milliseconds(latency.Max())
	r.Histograms[name] = latency.String()
	rates := perRound(turns, load.Result.Rate)
	r.Median(name+".requests_per_s", rates)
	r.Median(name+".cpu_ms", each(turns, func(t served) float64 { return milliseconds(t.usage.CPU) / float64(t.Sent) }))
	r.allocations(name, turns)
	r.Figures[name+".rss_mb"] = slices.Max(each(turns, func(t served) float64 { return float64(t.usage.Resident) / (1 << 20) }))
	fmt.Fprintf(r.log, "%-45s %8.0f requests/s (%.0f to %.0f)  p50 %.2f  p95 %.2f  p99 %.2f  max %.1f ms  %.2f CPU ms each  %.0f MB\n",
		name, figures.MedianOf(rates), slices.Min(rates), slices.Max(rates), milliseconds(latency.Quantile(.5)), milliseconds(latency.Quantile(.95)),
		milliseconds(latency.Quantile(.99)), milliseconds(latency.Max()), r.Figures[name+".cpu_ms"], r.Figures[name+".rss_mb"])
}

// allocations records those of a request, where they are known.
func (r recorder) allocations(name string, turns []served) {
	if turns[0].allocated.Objects == 0 {
		return
	}
	r.Median(name+".allocs_per_request", each(turns, func(t served) float64 { return float64(t.allocated.Objects) / float64(t.Sent) }))
	r.Median(name+".allocated_bytes_per_request", each(turns, func(t served) float64 { return float64(t.allocated.Bytes) / float64(t.Sent) }))
}

// parts records what the server says that its stages took.
func (r recorder) parts(name string, turns []served) {
	all := map[string]load.Histogram{}
	for _, t := range turns {
		for stage, h := range t.Stages.All() {
			if _, known := all[stage]; !known {
				all[stage] = load.NewHistogram()
			}
			all[stage].Merge(h)
		}
	}
	for stage, h := range all {
		for _, q := range quantiles {
			r.Figures[name+".stage."+stage+"."+q.name+"_ms"] = milliseconds(h.Quantile(q.of))
		}
		r.Figures[name+".stage."+stage+".max_ms"] = milliseconds(h.Max())
	}
}

// series is the turns one after the other.
func series(turns []served) (all []figures.Interval) {
	at := 0.0
	for _, t := range turns {
		for _, s := range t.Series {
			all = append(all, figures.Interval{
				At: at, Requests: s.Requests, Mean: milliseconds(s.Sum) / float64(max(s.Requests, 1)), Max: milliseconds(s.Max),
			})
			at += t.Width.Seconds()
		}
	}
	return all
}

// spread also prints what it records.
func (r recorder) spread(name string, values []float64) {
	r.Spread(name, values)
	fmt.Fprintf(r.log, "%-60s %.3g (%.3g to %.3g)\n", name, r.Figures[name], r.Figures[name+".min"], r.Figures[name+".max"])
}

func latencyOf(r load.Result) load.Histogram { return r.Latency }

func merged(turns []served, of func(load.Result) load.Histogram) load.Histogram {
	h := load.NewHistogram()
	for _, t := range turns {
		h.Merge(of(t.Result))
	}
	return h
}
