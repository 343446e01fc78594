package model

import (
	"fmt"
)

// modernConfig is the keys that only ModernBERT has.
type modernConfig struct {
	LayerTypes    []string `json:"layer_types"`
	GlobalEvery   int      `json:"global_attn_every_n_layers"` // before there were layer_types
	Local         int      `json:"local_attention"`            // the window, both sides together
	GlobalTheta   float64  `json:"global_rope_theta"`
	LocalTheta    float64  `json:"local_rope_theta"`
	AttentionBias bool     `json:"attention_bias"`
	FeedBias      bool     `json:"mlp_bias"`
	NormBias      bool     `json:"norm_bias"`
	HeadPooling   Pooling  `json:"classifier_pooling"`
	HeadBias      bool     `json:"classifier_bias"`
	HeadFunction  string   `json:"classifier_activation"`
}

var modernBERT = family{
	class: "ModernBert", types: []string{"modernbert"},
	keys: map[string]string{"norm_eps": "layer_norm_eps", "hidden_activation": "hidden_act"},
	defaults: configFile{Activation: "gelu", Epsilon: 1e-5, modernConfig: modernConfig{
		GlobalEvery: 3, Local: 128, GlobalTheta: 160000, LocalTheta: 10000, HeadPooling: CLSPooling, HeadFunction: "gelu",
	}},
	shape:    shapeModernBERT,
	prefixes: []string{"model."}, layers: modernLayers, encoder: readModernBERT, head: modernHead,
}

const (
	modernLayers  = "layers."
	fullAttention = "full_attention"
	sliding       = "sliding_attention"
)

func shapeModernBERT(f *configFile, c *Config) error {
	if f.AttentionBias || f.FeedBias || f.NormBias {
		return fmt.Errorf("%w: attention_bias, mlp_bias or norm_bias", ErrUnsupported)
	}
	c.Gated, c.PreNorm = true, true
	for i := range c.Attention {
		kind, err := f.layerType(i)
		if err != nil {
			return err
		}
		theta := map[string]float64{fullAttention: f.GlobalTheta, sliding: f.LocalTheta}[kind]
		if c.Attention[i], err = f.rope(kind, theta); err != nil {
			return err
		}
		if kind == sliding {
			c.Attention[i].Window = f.Local / 2
		}
	}
	return nil
}

func (f *configFile) layerType(i int) (string, error) {
	if f.LayerTypes == nil {
		if f.GlobalEvery > 0 && i%f.GlobalEvery != 0 {
			return sliding, nil
		}
		return fullAttention, nil
	}
	if len(f.LayerTypes) != f.Layers {
		return "", fmt.Errorf("%w: %d layer_types for %d layers", ErrInvalid, len(f.LayerTypes), f.Layers)
	}
	if kind := f.LayerTypes[i]; kind != fullAttention && kind != sliding {
		return "", fmt.Errorf("%w: layer type %q", ErrUnsupported, kind)
	}
	return f.LayerTypes[i], nil
}

func readModernBERT(r *reader, c Config) Encoder {
	return Encoder{
		Word:   r.tensor("embeddings.tok_embeddings.weight", c.Vocabulary, c.Hidden),
		Norm:   r.norm("embeddings.norm", c.Hidden, false),
		Layers: r.each(c, modernLayers, func(name string, i int) Layer { return r.modernLayer(name, i, c) }),
		Final:  r.norm("final_norm", c.Hidden, false),
	}
}

func (r *reader) modernLayer(name string, i int, c Config) Layer {
	qkv := r.stacked(name+"attn.Wqkv", c.Hidden, c.Hidden, 3, false)
	feed := r.stacked(name+"mlp.Wi", c.Hidden, c.Intermediate, 2, false)
	l := Layer{
		Query: qkv[0], Key: qkv[1], Value: qkv[2],
		AttentionOut: r.dense(name+"attn.Wo", c.Hidden, c.Hidden, false),
		Gate:         feed[0], Up: feed[1],
		Down:       r.dense(name+"mlp.Wo", c.Intermediate, c.Hidden, false),
		OutputNorm: r.norm(name+"mlp_norm", c.Hidden, false),
	}
	if i > 0 { // the first layer's input was normalised just before
		l.AttentionNorm = r.norm(name+"attn_norm", c.Hidden, false)
	}
	return l
}
