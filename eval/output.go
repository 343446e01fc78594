package eval

import "sluice/statistics"

// Figures are the report's numbers under their stable names. A run that stopped
// at the listings has the counts only.
func (r Report) Figures() map[string]float64 {
	values := map[string]float64{
		"leaks":          float64(count(r.Findings, Leak)),
		"scope_failures": float64(count(r.Findings, ScopeFailure)),
		"degraded":       float64(count(r.Findings, Degraded)),
		"disagreements":  float64(count(r.Findings, Disagreement)),
		"documents":      float64(r.Documents),
		"cases":          float64(r.Cases),
		"answerable":     float64(r.Answerable),
	}
	if r.Probes != nil {
		values["probes"] = float64(r.Probes.Asked)
		values["probe_failures"] = float64(r.Probes.Failures)
	}
	for _, s := range r.Strategies {
		values[s.Strategy+".p50_ms"] = s.P50
		values[s.Strategy+".p95_ms"] = s.P95
		values[s.Strategy+".mean_ms"] = s.Mean
		for route, share := range s.Routes {
			values[s.Strategy+".share."+route] = share
		}
		for name, e := range s.Metrics {
			putEstimate(values, s.Strategy+"."+name, e)
		}
	}
	return values
}

// putEstimate adds a figure with its interval.
func putEstimate(values map[string]float64, name string, e statistics.Estimate) {
	values[name], values[name+".low"], values[name+".high"] = e.Mean, e.Low, e.High
}
