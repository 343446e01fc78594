package model

import "fmt"

// nomicConfig is the keys that only Nomic's own config.json has.
type nomicConfig struct {
	RotaryFraction    float64  `json:"rotary_emb_fraction"`
	RotaryInterleaved bool     `json:"rotary_emb_interleaved"`
	RotaryScaleBase   *float64 `json:"rotary_emb_scale_base"`
	RotaryScaling     *float64 `json:"rotary_scaling_factor"` // beyond the trained positions
	TrainedPositions  int      `json:"max_trained_positions"`
	NomicPreNorm      bool     `json:"prenorm"`
	Parallel          bool     `json:"parallel_block"`
	RMSNorm           bool     `json:"use_rms_norm"`
	Causal            bool     `json:"causal"`
	ExpertsEvery      int      `json:"moe_every_n_layers"`
	QKVBias           bool     `json:"qkv_proj_bias"`
	FeedBias1         bool     `json:"mlp_fc1_bias"`
	FeedBias2         bool     `json:"mlp_fc2_bias"`
}

var nomicBERT = family{
	class: "NomicBert", types: []string{"nomic_bert"},
	keys: map[string]string{
		"n_embd": "hidden_size", "n_inner": "intermediate_size", "n_layer": "num_hidden_layers",
		"n_head": "num_attention_heads", "n_positions": "max_position_embeddings",
		"activation_function": "hidden_act", "layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta",
	},
	defaults: configFile{Activation: "silu", Epsilon: 1e-12, Types: 2, RopeTheta: 1000, nomicConfig: nomicConfig{RotaryFraction: 1}},
	shape:    shapeNomicBERT,
	prefixes: []string{"bert."}, layers: nomicLayers, encoder: readNomicBERT,
}

const nomicLayers = "encoder.layers."

func shapeNomicBERT(f *configFile, c *Config) error {
	for key, on := range map[string]bool{
		"rotary_emb_fraction": f.RotaryFraction != 1, "rotary_emb_interleaved": f.RotaryInterleaved,
		"rotary_emb_scale_base": f.RotaryScaleBase != nil, "prenorm": f.NomicPreNorm, "parallel_block": f.Parallel,
		"use_rms_norm": f.RMSNorm, "causal": f.Causal, "moe_every_n_layers": f.ExpertsEvery != 0,
		"qkv_proj_bias": f.QKVBias, "mlp_fc1_bias": f.FeedBias1, "mlp_fc2_bias": f.FeedBias2,
	} {
		if on {
			return fmt.Errorf("%w: %s", ErrUnsupported, key)
		}
	}
	if f.RotaryScaling != nil && f.TrainedPositions > 0 { // longer sequences rotate by other angles
		c.Positions = min(c.Positions, f.TrainedPositions)
	}
	c.Gated = true
	return f.ropeEverywhere(c)
}

// ropeEverywhere gives every layer the same rotary embedding.
func (f *configFile) ropeEverywhere(c *Config) error {
	a, err := f.rope(fullAttention, f.RopeTheta)
	for i := range c.Attention {
		c.Attention[i] = a
	}
	return err
}

func readNomicBERT(r *reader, c Config) Encoder {
	return Encoder{
		Word:   r.tensor("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		Type:   r.types("embeddings.token_type_embeddings.weight", c),
		Norm:   r.norm("emb_ln", c.Hidden, true),
		Layers: r.each(c, nomicLayers, func(name string, _ int) Layer { return r.nomicLayer(name, c) }),
	}
}

// types reads the table of token types, which some models do without.
func (r *reader) types(name string, c Config) []float32 {
	if c.Types == 0 {
		return nil
	}
	return r.tensor(name, c.Types, c.Hidden)
}

func (r *reader) nomicLayer(name string, c Config) Layer {
	qkv := r.stacked(name+"attn.Wqkv", c.Hidden, c.Hidden, 3, false)
	return Layer{
		Query: qkv[0], Key: qkv[1], Value: qkv[2],
		AttentionOut:  r.dense(name+"attn.out_proj", c.Hidden, c.Hidden, false),
		AttentionNorm: r.norm(name+"norm1", c.Hidden, true),
		Up:            r.dense(name+"mlp.fc11", c.Hidden, c.Intermediate, false),
		Gate:          r.dense(name+"mlp.fc12", c.Hidden, c.Intermediate, false),
		Down:          r.dense(name+"mlp.fc2", c.Intermediate, c.Hidden, false),
		OutputNorm:    r.norm(name+"norm2", c.Hidden, true),
	}
}
