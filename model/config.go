package model

import (
	"errors"
	"fmt"
	"math"
	"os"
)

// ErrUnsupported is wrapped where a model is intact but of a kind that is not
// implemented.
var ErrUnsupported = errors.New("unsupported model")

// ErrInvalid is wrapped where a model's files contradict themselves.
var ErrInvalid = errors.New("invalid model")

// ErrUnknownPrompt is wrapped where a model has no prompt of that name.
var ErrUnknownPrompt = errors.New("the model has no prompt named")

// Activation is the function between two matrices.
type Activation string

const (
	Identity Activation = "identity"
	GELU     Activation = "gelu"      // x·Φ(x) by the error function
	GELUTanh Activation = "gelu_tanh" // its approximation by tanh
	SiLU     Activation = "silu"      // x/(1 + exp(−x))
	ReLU     Activation = "relu"
	Tanh     Activation = "tanh"
)

// Config is what decides an encoder's shape and arithmetic, whatever its
// family. How the parts meet is said at Encoder and Layer.
type Config struct {
	Architecture string
	Hidden       int
	Layers       int
	Heads        int
	Intermediate int
	Vocabulary   int
	Positions    int // the longest sequence
	// Offset is the position of a sequence's first token. Where it is not 0,
	// the token with id Offset−1, which pads, has position Offset−1 wherever it
	// stands, and is not counted.
	Offset     int
	Types      int // token type ids; with fewer than two they make no difference
	Buckets    int // rows of the table of relative positions; 0: there is none
	Activation Activation
	Gated      bool    // see Layer
	PreNorm    bool    // see Layer
	Epsilon    float64 // of layer normalisation
	Attention  []Attention
}

// Attention is what sets one layer's attention apart.
type Attention struct {
	Window  int     // tokens i and j see each other if |i−j| ≤ Window; 0: all do
	Theta   float64 // base of the rotary embedding of queries and keys; 0: none
	Stretch float64 // rotary positions are divided by it; 0: they are not
}

// HeadSize is the width of one attention head.
func (c Config) HeadSize() int { return c.Hidden / c.Heads }

func readConfig(path string) (Config, *configFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, nil, fmt.Errorf("reading the model's config: %w", err)
	}
	file, err := parseFile(data)
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	c, err := file.config()
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, file, nil
}

// ParseConfig reads a config.json. Keys that it leaves out have the defaults
// that transformers has for the family.
func ParseConfig(data []byte) (Config, error) {
	file, err := parseFile(data)
	if err != nil {
		return Config{}, err
	}
	return file.config()
}

// check refuses what no real model has.
func (c Config) check() error {
	if c.Positions < 1 {
		return fmt.Errorf("%w: max_position_embeddings leaves room for %d tokens", ErrInvalid, c.Positions)
	}
	if c.Hidden%c.Heads != 0 {
		return fmt.Errorf("%w: hidden_size %d is not a multiple of num_attention_heads %d", ErrInvalid, c.Hidden, c.Heads)
	}
	if !(c.Epsilon > 0) || math.IsInf(c.Epsilon, 0) {
		return fmt.Errorf("%w: layer_norm_eps is %v", ErrInvalid, c.Epsilon)
	}
	for i, a := range c.Attention {
		if !(a.Theta >= 0) || math.IsInf(a.Theta, 0) || !(a.Stretch >= 0) || math.IsInf(a.Stretch, 0) || a.Window < 0 {
			return fmt.Errorf("%w: attention of layer %d is %+v", ErrInvalid, i, a)
		}
		if a.Theta > 0 && c.HeadSize()%2 != 0 {
			return fmt.Errorf("%w: rotary embeddings need an even head size, not %d", ErrInvalid, c.HeadSize())
		}
	}
	return nil
}
