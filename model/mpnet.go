package model

import "fmt"

var mpnet = family{
	class: "MPNet", types: []string{"mpnet"},
	defaults: configFile{Activation: "gelu", Epsilon: 1e-12, Buckets: mpnetBuckets},
	shape:    shapeMPNet,
	prefixes: []string{"mpnet."}, layers: bertLayers, encoder: readMPNet, head: denseHead,
}

const (
	mpnetPad     = 1 // whatever the config says
	mpnetBuckets = 32
)

// shapeMPNet wants a table as long as the buckets that transformers uses,
// which the config does not change.
func shapeMPNet(f *configFile, c *Config) error {
	if f.Buckets != mpnetBuckets {
		return fmt.Errorf("%w: relative_attention_num_buckets %d; supported: %d", ErrUnsupported, f.Buckets, mpnetBuckets)
	}
	c.Buckets = f.Buckets
	c.offset(mpnetPad)
	return f.learnedPositions()
}

func readMPNet(r *reader, c Config) Encoder {
	return Encoder{
		Word:     r.tensor("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		Position: r.tensor("embeddings.position_embeddings.weight", c.Offset+c.Positions, c.Hidden),
		Norm:     r.norm("embeddings.LayerNorm", c.Hidden, true),
		Relative: r.tensor("encoder.relative_attention_bias.weight", c.Buckets, c.Heads),
		Layers:   r.each(c, bertLayers, func(name string, _ int) Layer { return r.mpnetLayer(name, c) }),
	}
}

func (r *reader) mpnetLayer(name string, c Config) Layer {
	return Layer{
		Query:         r.dense(name+"attention.attn.q", c.Hidden, c.Hidden, true),
		Key:           r.dense(name+"attention.attn.k", c.Hidden, c.Hidden, true),
		Value:         r.dense(name+"attention.attn.v", c.Hidden, c.Hidden, true),
		AttentionOut:  r.dense(name+"attention.attn.o", c.Hidden, c.Hidden, true),
		AttentionNorm: r.norm(name+"attention.LayerNorm", c.Hidden, true),
		Up:            r.dense(name+"intermediate.dense", c.Hidden, c.Intermediate, true),
		Down:          r.dense(name+"output.dense", c.Intermediate, c.Hidden, true),
		OutputNorm:    r.norm(name+"output.LayerNorm", c.Hidden, true),
	}
}
