package model

var distilBERT = family{
	class: "DistilBert", types: []string{"distilbert"},
	keys: map[string]string{
		"dim": "hidden_size", "hidden_dim": "intermediate_size", "n_layers": "num_hidden_layers",
		"n_heads": "num_attention_heads", "activation": "hidden_act",
	},
	defaults: configFile{Activation: "gelu", Epsilon: 1e-12},
	shape:    func(f *configFile, _ *Config) error { return f.learnedPositions() },
	prefixes: []string{"distilbert."}, layers: distilLayers, encoder: readDistilBERT, head: distilHead,
}

const distilLayers = "transformer.layer."

func readDistilBERT(r *reader, c Config) Encoder {
	return Encoder{
		Word:     r.tensor("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		Position: r.tensor("embeddings.position_embeddings.weight", c.Positions, c.Hidden),
		Norm:     r.norm("embeddings.LayerNorm", c.Hidden, true),
		Layers:   r.each(c, distilLayers, func(name string, _ int) Layer { return r.distilLayer(name, c) }),
	}
}

func (r *reader) distilLayer(name string, c Config) Layer {
	return Layer{
		Query:         r.dense(name+"attention.q_lin", c.Hidden, c.Hidden, true),
		Key:           r.dense(name+"attention.k_lin", c.Hidden, c.Hidden, true),
		Value:         r.dense(name+"attention.v_lin", c.Hidden, c.Hidden, true),
		AttentionOut:  r.dense(name+"attention.out_lin", c.Hidden, c.Hidden, true),
		AttentionNorm: r.norm(name+"sa_layer_norm", c.Hidden, true),
		Up:            r.dense(name+"ffn.lin1", c.Hidden, c.Intermediate, true),
		Down:          r.dense(name+"ffn.lin2", c.Intermediate, c.Hidden, true),
		OutputNorm:    r.norm(name+"output_layer_norm", c.Hidden, true),
	}
}
