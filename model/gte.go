package model

import "fmt"

// gteConfig is the keys that only Alibaba's own config.json has.
type gteConfig struct {
	NormType string `json:"layer_norm_type"`
	LogScale bool   `json:"logn_attention_scale"`
}

var (
	gte = family{
		class: "Gte", types: []string{"gte"},
		defaults: configFile{Activation: "gelu", Epsilon: 1e-12, Types: 1, RopeTheta: 10000},
		shape:    shapeGTE,
		prefixes: []string{"gte.", "new."}, layers: bertLayers, encoder: readGTE, head: pooledHead,
	}
	newGTE = newNamed(gte) // its name before transformers knew it
)

func newNamed(f family) family {
	f.class, f.types = "New", []string{"new"}
	return f
}

func shapeGTE(f *configFile, c *Config) error {
	if f.PositionType != "" && f.PositionType != "rope" {
		return fmt.Errorf("%w: position_embedding_type %q", ErrUnsupported, f.PositionType)
	}
	if f.LogScale || (f.NormType != "" && f.NormType != "layer_norm") {
		return fmt.Errorf("%w: logn_attention_scale %t, layer_norm_type %q", ErrUnsupported, f.LogScale, f.NormType)
	}
	c.Gated = true
	return f.ropeEverywhere(c)
}

func readGTE(r *reader, c Config) Encoder {
	return Encoder{
		Word:   r.tensor("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		Type:   r.types("embeddings.token_type_embeddings.weight", c),
		Norm:   r.norm("embeddings.LayerNorm", c.Hidden, true),
		Layers: r.each(c, bertLayers, func(name string, _ int) Layer { return r.gteLayer(name, c) }),
	}
}

func (r *reader) gteLayer(name string, c Config) Layer {
	qkv := r.stacked(name+"attention.qkv_proj", c.Hidden, c.Hidden, 3, true)
	feed := r.stacked(name+"mlp.up_gate_proj", c.Hidden, c.Intermediate, 2, false)
	return Layer{
		Query: qkv[0], Key: qkv[1], Value: qkv[2],
		AttentionOut:  r.dense(name+"attention.o_proj", c.Hidden, c.Hidden, true),
		AttentionNorm: r.norm(name+"attn_ln", c.Hidden, true),
		Up:            feed[0], Gate: feed[1],
		Down:       r.dense(name+"mlp.down_proj", c.Intermediate, c.Hidden, true),
		OutputNorm: r.norm(name+"mlp_ln", c.Hidden, true),
	}
}
