package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pooling is how a sequence's token vectors become one.
type Pooling string

const (
	MeanPooling Pooling = "mean" // over all tokens, special ones included
	CLSPooling  Pooling = "cls"  // the first token's
	LastPooling Pooling = "last" // the last token's
)

// poolings maps the names of a Pooling module, without pooling_mode_.
var poolings = map[string]Pooling{
	"mean_tokens": MeanPooling, "mean": MeanPooling, "cls_token": CLSPooling, "cls": CLSPooling, "lasttoken": LastPooling,
}

// modules is what the sentence-transformers files say around the encoder.
type modules struct {
	pooling     Pooling
	pooled      bool // a Pooling module was there
	projections []Projection
	weights     []string // the projections' files
	maxTokens   int      // 0: not said
	normalized  bool
}

// readModules reads modules.json and what it names. A folder without it holds
// a bare encoder: mean pooling, as sentence-transformers does. Vectors are
// always normalised, whether or not there is a Normalize module.
func readModules(dir string) (modules, error) {
	m := modules{pooling: MeanPooling}
	var list []struct{ Path, Type string }
	if found, err := readJSON(filepath.Join(dir, "modules.json"), &list); err != nil || !found {
		return m, err
	}
	for _, module := range list {
		if !filepath.IsLocal(filepath.Join(".", module.Path)) {
			return m, fmt.Errorf("%w: module path %q leaves the model's folder", ErrInvalid, module.Path)
		}
		if err := m.read(filepath.Join(dir, module.Path), module.Type); err != nil {
			return m, err
		}
	}
	return m, nil
}

// read handles one module by the last part of its Python class name.
func (m *modules) read(dir, class string) error {
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "Transformer":
		return m.readTransformer(filepath.Join(dir, "sentence_bert_config.json"))
	case "Pooling":
		return m.readPooling(filepath.Join(dir, "config.json"))
	case "Dense":
		return m.readDense(dir)
	case "Normalize":
		m.normalized = true
		return nil
	}
	return fmt.Errorf("%w: module %q; supported: Transformer, Pooling, Dense, Normalize", ErrUnsupported, class)
}

func (m *modules) readTransformer(path string) error {
	var file struct {
		MaxTokens int `json:"max_seq_length"`
	}
	if _, err := readJSON(path, &file); err != nil {
		return err
	}
	if file.MaxTokens < 0 {
		return fmt.Errorf("%s: %w: max_seq_length is %d", path, ErrInvalid, file.MaxTokens)
	}
	m.maxTokens = file.MaxTokens
	return nil
}

// readPooling wants exactly one mode, and one that is implemented.
func (m *modules) readPooling(path string) error {
	var file map[string]any
	if _, err := readJSON(path, &file); err != nil {
		return err
	}
	if m.pooled || m.normalized {
		return fmt.Errorf("%w: Pooling after Pooling or Normalize", ErrUnsupported)
	}
	if include, ok := file["include_prompt"].(bool); ok && !include {
		return fmt.Errorf("%s: %w: include_prompt false", path, ErrUnsupported)
	}
	mode := poolingMode(file)
	pooling, ok := poolings[mode]
	if !ok {
		return fmt.Errorf("%s: %w: pooling %q; supported: mean_tokens, cls_token, lasttoken", path, ErrUnsupported, mode)
	}
	m.pooling, m.pooled = pooling, true
	return nil
}

// poolingMode knows both generations of keys: a name, or a flag per mode.
func poolingMode(file map[string]any) string {
	if name, ok := file["pooling_mode"].(string); ok {
		return name
	}
	var modes []string
	for key, value := range file {
		if on, _ := value.(bool); on && strings.HasPrefix(key, "pooling_mode_") {
			modes = append(modes, strings.TrimPrefix(key, "pooling_mode_"))
		}
	}
	slices.Sort(modes)
	return strings.Join(modes, "+")
}

// readJSON reports whether the file exists.
func readJSON(path string, v any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the model: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("%s: %w: %w", path, ErrInvalid, err)
	}
	return true, nil
}
