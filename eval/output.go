package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sluice/bench/figures"
)

// writeOutputs writes what the options ask for.
func (r *runner) writeOutputs() error {
	if r.options.Out != "" {
		if err := r.writeDirectory(r.options.Out); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if r.options.JSON == "" {
		return nil
	}
	return r.report.Figures().Write(r.options.JSON)
}

func (r *runner) writeDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	run, err := json.MarshalIndent(r.report, "", "  ")
	if err != nil {
		return err
	}
	var cases bytes.Buffer
	lines := json.NewEncoder(&cases)
	for _, a := range r.answers {
		if err := lines.Encode(a); err != nil {
			return err
		}
	}
	for name, data := range map[string][]byte{
		"run.json": append(run, '\n'), "cases.jsonl": cases.Bytes(), "report.md": []byte(r.report.Markdown()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Figures are the report's numbers under their stable names. A run that stopped
// at the listings has the counts only.
func (r Report) Figures() figures.File {
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
			values[s.Strategy+"."+name] = e.Mean
			values[s.Strategy+"."+name+".low"] = e.Low
			values[s.Strategy+"."+name+".high"] = e.High
		}
	}
	return figures.File{Command: r.Command, Commit: r.Commit, Environment: r.Environment, Figures: values}
}
