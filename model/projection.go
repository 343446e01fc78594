package model

import (
	"fmt"
	"path/filepath"
	"strings"

	"sluice/model/safetensors"
)

// Projection is a module after pooling: v = a(Dense·v), a the Activation.
type Projection struct {
	Dense
	Activation Activation
}

// readDense reads a Dense module of sentence-transformers.
func (m *modules) readDense(dir string) error {
	if m.normalized {
		return fmt.Errorf("%w: Dense after Normalize", ErrUnsupported)
	}
	file := struct {
		In         int    `json:"in_features"`
		Out        int    `json:"out_features"`
		Bias       bool   `json:"bias"`
		Activation string `json:"activation_function"`
	}{Bias: true, Activation: "Tanh"}
	path := filepath.Join(dir, "config.json")
	if _, err := readJSON(path, &file); err != nil {
		return err
	}
	const limit = 1 << 16
	if file.In < 1 || file.In > limit || file.Out < 1 || file.Out > limit {
		return fmt.Errorf("%s: %w: in_features %d, out_features %d", path, ErrInvalid, file.In, file.Out)
	}
	functions := map[string]Activation{"Tanh": Tanh, "Identity": Identity, "ReLU": ReLU, "GELU": GELU, "SiLU": SiLU}
	activation, ok := functions[file.Activation[strings.LastIndexByte(file.Activation, '.')+1:]]
	if !ok {
		return fmt.Errorf("%s: %w: activation_function %q", path, ErrUnsupported, file.Activation)
	}
	return m.addProjection(dir, activation, func(r *reader) Dense { return r.dense("linear", file.In, file.Out, file.Bias) })
}

func (m *modules) addProjection(dir string, activation Activation, read func(*reader) Dense) error {
	archive, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	defer archive.Close()
	r := &reader{archive: archive, read: map[string]bool{}}
	m.projections = append(m.projections, Projection{Dense: read(r), Activation: activation})
	m.weights = append(m.weights, archive.Paths()...)
	return r.err
}

// checkWidths makes sure that each projection takes what comes before it.
func (m *modules) checkWidths(hidden int) error {
	for _, p := range m.projections {
		if p.In != hidden {
			return fmt.Errorf("%w: a Dense module takes %d dimensions where there are %d", ErrInvalid, p.In, hidden)
		}
		hidden = p.Out
	}
	return nil
}
