package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// ErrUnsupported is wrapped where a model is intact but of a kind that is not
// implemented.
var ErrUnsupported = errors.New("unsupported model")

// ErrInvalid is wrapped where a model's files contradict themselves.
var ErrInvalid = errors.New("invalid model")

// Activation is the function between a layer's two feed-forward matrices.
type Activation string

const (
	GELU     Activation = "gelu"      // x·Φ(x) by the error function
	GELUTanh Activation = "gelu_tanh" // its approximation by tanh
)

// activations maps the names of config.json.
var activations = map[string]Activation{
	"gelu": GELU, "gelu_python": GELU,
	"gelu_new": GELUTanh, "gelu_pytorch_tanh": GELUTanh, "gelu_fast": GELUTanh,
}

// architectures are those whose encoder is implemented.
var architectures = []string{"BertModel"}

// Config is what decides an encoder's shape and arithmetic.
type Config struct {
	Architecture string
	Hidden       int
	Layers       int
	Heads        int
	Intermediate int
	Vocabulary   int
	Positions    int // the longest sequence
	Types        int // token type ids
	Activation   Activation
	Epsilon      float64 // of layer normalisation
}

// HeadSize is the width of one attention head.
func (c Config) HeadSize() int { return c.Hidden / c.Heads }

// configFile is config.json as transformers writes it.
type configFile struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	Hidden        int      `json:"hidden_size"`
	Layers        int      `json:"num_hidden_layers"`
	Heads         int      `json:"num_attention_heads"`
	Intermediate  int      `json:"intermediate_size"`
	Vocabulary    int      `json:"vocab_size"`
	Positions     int      `json:"max_position_embeddings"`
	Types         int      `json:"type_vocab_size"`
	Activation    string   `json:"hidden_act"`
	Epsilon       float64  `json:"layer_norm_eps"`
	PositionType  string   `json:"position_embedding_type"`
	Decoder       bool     `json:"is_decoder"`
}

func readConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the model's config: %w", err)
	}
	c, err := ParseConfig(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseConfig reads a config.json. Keys that it leaves out have transformers'
// defaults for BERT.
func ParseConfig(data []byte) (Config, error) {
	file := configFile{Activation: "gelu", Epsilon: 1e-12, Types: 2, PositionType: "absolute"}
	if err := json.Unmarshal(data, &file); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := file.checkSupported(); err != nil {
		return Config{}, err
	}
	c := Config{
		Architecture: "BertModel", Hidden: file.Hidden, Layers: file.Layers, Heads: file.Heads,
		Intermediate: file.Intermediate, Vocabulary: file.Vocabulary, Positions: file.Positions,
		Types: file.Types, Activation: activations[file.Activation], Epsilon: file.Epsilon,
	}
	return c, c.check()
}

func (f configFile) checkSupported() error {
	name := strings.Join(f.Architectures, ", ")
	if f.ModelType != "bert" || (name != "" && !slices.Contains(architectures, name)) {
		return fmt.Errorf("%w: architecture %q of type %q; supported: %s",
			ErrUnsupported, name, f.ModelType, strings.Join(architectures, ", "))
	}
	if _, ok := activations[f.Activation]; !ok {
		return fmt.Errorf("%w: hidden_act %q", ErrUnsupported, f.Activation)
	}
	if f.PositionType != "absolute" {
		return fmt.Errorf("%w: position_embedding_type %q", ErrUnsupported, f.PositionType)
	}
	if f.Decoder {
		return fmt.Errorf("%w: is_decoder", ErrUnsupported)
	}
	return nil
}

// check refuses sizes that no real model has, before they size an allocation.
func (c Config) check() error {
	const limit = 1 << 22
	sizes := map[string]int{
		"hidden_size": c.Hidden, "num_hidden_layers": c.Layers, "num_attention_heads": c.Heads,
		"intermediate_size": c.Intermediate, "vocab_size": c.Vocabulary,
		"max_position_embeddings": c.Positions, "type_vocab_size": c.Types,
	}
	for name, size := range sizes {
		if size < 1 || size > limit {
			return fmt.Errorf("%w: %s is %d", ErrInvalid, name, size)
		}
	}
	if c.Hidden%c.Heads != 0 {
		return fmt.Errorf("%w: hidden_size %d is not a multiple of num_attention_heads %d", ErrInvalid, c.Hidden, c.Heads)
	}
	if !(c.Epsilon > 0) || math.IsInf(c.Epsilon, 0) {
		return fmt.Errorf("%w: layer_norm_eps is %v", ErrInvalid, c.Epsilon)
	}
	return nil
}
