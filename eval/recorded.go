package eval

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Recorded is a run as it was written to a directory.
type Recorded struct {
	Report
	Answers []Answer
}

// ReadRun reads run.json and cases.jsonl of a directory that a run wrote.
func ReadRun(dir string) (Recorded, error) {
	runs, err := readLines[Report](filepath.Join(dir, "run.json"))
	if err != nil {
		return Recorded{}, fmt.Errorf("%w: give a directory that sluice eval run --out wrote", err)
	}
	if len(runs) != 1 {
		return Recorded{}, fmt.Errorf("%s: run.json holds %d objects, one is expected", dir, len(runs))
	}
	answers, err := readLines[Answer](filepath.Join(dir, "cases.jsonl"))
	return Recorded{runs[0], answers}, err
}

// strategies in the order of the report.
func (r Recorded) strategies() []string {
	names := make([]string, len(r.Strategies))
	for i, s := range r.Strategies {
		names[i] = s.Strategy
	}
	return names
}

// of are the answers by one strategy.
func (r Recorded) of(strategy string) []Answer {
	return slices.DeleteFunc(slices.Clone(r.Answers), func(a Answer) bool { return a.Strategy != strategy })
}
