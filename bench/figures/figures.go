// Package figures is the file in which every evaluation and benchmark states
// what it measured, where, and by which command.
package figures

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// File is one run's figures. Names are flat and stable ("dense.ndcg@10",
// "int8.tokens_per_s"); docs/measured.md lists them.
type File struct {
	Command     string             `json:"command"`
	Commit      string             `json:"commit"`
	Environment Environment        `json:"environment"`
	Figures     map[string]float64 `json:"figures"`
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
