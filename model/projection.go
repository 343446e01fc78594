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

// pooledVector is what sentence-transformers calls it.
const pooledVector = "sentence_embedding"

// torchActivations maps the names of torch's modules.
var torchActivations = map[string]Activation{"Tanh": Tanh, "Identity": Identity, "ReLU": ReLU, "GELU": GELU, "SiLU": SiLU}

// denseFile is the config.json of a Dense module of sentence-transformers.
type denseFile struct {
	In         int    `json:"in_features"`
	Out        int    `json:"out_features"`
	Bias       bool   `json:"bias"`
	Activation string `json:"activation_function"`
	Input      string `json:"module_input_name"`
	Output     string `json:"module_output_name"`
}

func (m *modules) readDense(dir string) error {
	if !m.pooled || m.normalized {
		return fmt.Errorf("%w: Dense before Pooling, as in late-interaction models (ColBERT, PyLate), or after Normalize", ErrUnsupported)
	}
	file := denseFile{Bias: true, Activation: "Tanh", Input: pooledVector}
	path := filepath.Join(dir, "config.json")
	if _, err := readJSON(path, &file); err != nil {
		return err
	}
	if err := file.check(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return m.addProjection(dir, file)
}

// activation is the function by the last part of its Python class name.
func (f denseFile) activation() Activation {
	return torchActivations[f.Activation[strings.LastIndexByte(f.Activation, '.')+1:]]
}

func (f denseFile) check() error {
	const limit = 1 << 16
	if f.In < 1 || f.In > limit || f.Out < 1 || f.Out > limit {
		return fmt.Errorf("%w: in_features %d, out_features %d", ErrInvalid, f.In, f.Out)
	}
	if f.Input != pooledVector || (f.Output != "" && f.Output != pooledVector) {
		return fmt.Errorf("%w: Dense from %q to %q", ErrUnsupported, f.Input, f.Output)
	}
	if f.activation() == "" {
		return fmt.Errorf("%w: activation_function %q", ErrUnsupported, f.Activation)
	}
	return nil
}

func (m *modules) addProjection(dir string, file denseFile) error {
	archive, err := safetensors.Open(dir)
	if err != nil {
		return err
	}
	defer archive.Close()
	r := &reader{archive: archive, read: map[string]bool{}}
	dense := r.dense("linear", file.In, file.Out, file.Bias)
	m.projections = append(m.projections, Projection{Dense: dense, Activation: file.activation()})
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
