package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// activations maps the names of config.json.
var activations = map[string]Activation{
	"gelu": GELU, "gelu_python": GELU, "geglu": GELU,
	"gelu_new": GELUTanh, "gelu_pytorch_tanh": GELUTanh, "gelu_fast": GELUTanh,
	"silu": SiLU, "swish": SiLU, "swiglu": SiLU,
}

// configFile is config.json as transformers writes it, under the names of
// BERT where families differ.
type configFile struct {
	family *family

	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	Hidden        int      `json:"hidden_size"`
	Layers        int      `json:"num_hidden_layers"`
	Heads         int      `json:"num_attention_heads"`
	HeadSize      int      `json:"head_dim"`
	Intermediate  int      `json:"intermediate_size"`
	Vocabulary    int      `json:"vocab_size"`
	Positions     int      `json:"max_position_embeddings"`
	Types         int      `json:"type_vocab_size"`
	Buckets       int      `json:"relative_attention_num_buckets"`
	Pad           int      `json:"pad_token_id"`
	Activation    string   `json:"hidden_act"`
	Epsilon       float64  `json:"layer_norm_eps"`
	PositionType  string   `json:"position_embedding_type"`
	Decoder       bool     `json:"is_decoder"`

	RopeParameters json.RawMessage `json:"rope_parameters"` // since transformers 5
	RopeTheta      float64         `json:"rope_theta"`
	RopeScaling    *ropeParameters `json:"rope_scaling"`

	modernConfig
	nomicConfig
	gteConfig
	classifierConfig
}

// parseFile reads data over the defaults of its family.
func parseFile(data []byte) (*configFile, error) {
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var kind struct {
		Architectures []string `json:"architectures"`
		ModelType     string   `json:"model_type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	f, err := familyOf(kind.ModelType, kind.Architectures)
	if err != nil {
		return nil, err
	}
	return f.parse(keys)
}

func (f *family) parse(keys map[string]json.RawMessage) (*configFile, error) {
	for theirs, ours := range f.keys {
		if value, ok := keys[theirs]; ok {
			keys[ours] = value
		}
	}
	data, err := json.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	file := f.defaults
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	file.family = f
	return &file, nil
}

// config says what the file means.
func (f *configFile) config() (Config, error) {
	if err := f.checkSizes(); err != nil {
		return Config{}, err
	}
	if _, ok := activations[f.Activation]; !ok {
		return Config{}, fmt.Errorf("%w: hidden_act %q", ErrUnsupported, f.Activation)
	}
	if f.Decoder {
		return Config{}, fmt.Errorf("%w: is_decoder", ErrUnsupported)
	}
	if f.HeadSize > 0 && f.HeadSize*f.Heads != f.Hidden {
		return Config{}, fmt.Errorf("%w: head_dim %d with hidden_size %d and %d heads", ErrUnsupported, f.HeadSize, f.Hidden, f.Heads)
	}
	c := Config{
		Architecture: f.architecture(), Hidden: f.Hidden, Layers: f.Layers, Heads: f.Heads,
		Intermediate: f.Intermediate, Vocabulary: f.Vocabulary, Positions: f.Positions, Types: f.Types,
		Activation: activations[f.Activation], Epsilon: f.Epsilon,
		Attention: slices.Repeat([]Attention{{}}, f.Layers),
	}
	if err := f.family.shape(f, &c); err != nil {
		return Config{}, err
	}
	return c, c.check()
}

// checkSizes refuses sizes that no real model has, before they size an
// allocation.
func (f *configFile) checkSizes() error {
	sizes := []struct {
		key            string
		size, min, max int
	}{
		{"hidden_size", f.Hidden, 1, 1 << 16}, {"num_hidden_layers", f.Layers, 1, 1 << 10},
		{"num_attention_heads", f.Heads, 1, 1 << 12}, {"intermediate_size", f.Intermediate, 1, 1 << 20},
		{"vocab_size", f.Vocabulary, 1, 1 << 22}, {"max_position_embeddings", f.Positions, 1, 1 << 18},
		{"type_vocab_size", f.Types, 0, 1 << 10}, {"pad_token_id", f.Pad, 0, 1 << 22},
	}
	for _, s := range sizes {
		if s.size < s.min || s.size > s.max {
			return fmt.Errorf("%w: %s is %d", ErrInvalid, s.key, s.size)
		}
	}
	return nil
}

func (f *configFile) architecture() string {
	if len(f.Architectures) == 0 {
		return f.family.class + encoderSuffix
	}
	return f.Architectures[0]
}

// learnedPositions refuses other kinds of positions than a table of them.
func (f *configFile) learnedPositions() error {
	if f.PositionType != "" && f.PositionType != "absolute" {
		return fmt.Errorf("%w: position_embedding_type %q", ErrUnsupported, f.PositionType)
	}
	return nil
}
