// Package figures is the file in which every evaluation and benchmark states
// what it measured, where, and by which command; and the comparison of two such
// files.
package figures

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// File is one run's figures. Names are flat and stable ("dense.ndcg@10",
// "int8.tokens_per_s"); docs/measured.md lists them. docs/benchmarks.md states
// the format.
type File struct {
	Command     string             `json:"command"`
	Flags       map[string]string  `json:"flags,omitempty"` // as they were in force, defaults included
	Commit      string             `json:"commit"`
	Started     time.Time          `json:"started,omitzero"`
	Seconds     float64            `json:"seconds,omitempty"`
	Environment Environment        `json:"environment"`
	Modules     map[string]string  `json:"modules,omitempty"` // version by path
	Figures     map[string]float64 `json:"figures"`

	// Rounds has, of a figure that is a median, the value of each round: what two
	// runs are compared by.
	Rounds map[string][]float64 `json:"rounds,omitempty"`
	// Histograms are of durations in nanoseconds: HdrHistogram's V2 compressed
	// encoding, in base64.
	Histograms map[string]string `json:"histograms,omitempty"`
	// Series are what a load was like as it went on.
	Series map[string][]Interval `json:"series,omitempty"`
	// Profiles are files beside this one: what the processor did meanwhile.
	Profiles []string `json:"profiles,omitempty"`
}

// Interval is requests that were answered in a stretch of a load.
type Interval struct {
	At       float64 `json:"at_s"` // its begin, from that of the load
	Requests int     `json:"requests"`
	Mean     float64 `json:"mean_ms"`
	Max      float64 `json:"max_ms"`
}

// New is a file without figures that says where and by what they are measured.
// Kernels is the kernel set in use.
func New(ctx context.Context, kernels string) File {
	return File{
		Commit: Commit(ctx), Started: time.Now().UTC(), Environment: Local(kernels), Modules: modules(),
		Figures: map[string]float64{}, Rounds: map[string][]float64{}, Histograms: map[string]string{}, Series: map[string][]Interval{},
	}
}

// Name is the command without its arguments, "bench serve".
func (f File) Name() string {
	words := strings.Fields(f.Command)
	return strings.Join(words[min(1, len(words)):min(3, len(words))], " ")
}

// Took sets how long the run has taken until now.
func (f *File) Took() { f.Seconds = time.Since(f.Started).Seconds() }

// Median records the median of the rounds as the figure, and the rounds. It
// returns the median.
func (f File) Median(name string, rounds []float64) float64 {
	m := MedianOf(rounds)
	f.Figures[name] = m
	if len(rounds) > 1 {
		f.Rounds[name] = rounds
	}
	return m
}

// Spread is Median that also records the least and the greatest of the rounds.
func (f File) Spread(name string, rounds []float64) {
	f.Median(name, rounds)
	f.Figures[name+".min"], f.Figures[name+".max"] = slices.Min(rounds), slices.Max(rounds)
}

// MedianOf is the median of some values, of which there is one at least.
func MedianOf(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Write stores the file at path as indented JSON with sorted names. A figure
// that is not a finite number is an error: it would not be JSON.
func (f File) Write(path string) error {
	for name, value := range f.Figures {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("writing figures %s: %s is %v", path, name, value)
		}
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding figures: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing figures: %w", err)
	}
	return nil
}

// maxFile bounds a file of figures that is read.
const maxFile = 64 << 20

// Read reads what Write wrote.
func Read(path string) (f File, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return f, fmt.Errorf("reading figures: %w", err)
	}
	if info.Size() > maxFile {
		return f, fmt.Errorf("reading figures: %s has %d bytes, which is more than a run writes", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("reading figures: %w", err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("reading figures: %s is no file that --json wrote: %w", path, err)
	}
	if len(f.Figures) == 0 {
		return f, fmt.Errorf("reading figures: %s has none; give a file that --json wrote", path)
	}
	return f, nil
}
