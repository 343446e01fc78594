package model

var (
	bertDefaults = configFile{Activation: "gelu", Epsilon: 1e-12, Types: 2, PositionType: "absolute"}

	bert = family{
		class: "Bert", types: []string{"bert"}, defaults: bertDefaults,
		shape:    func(f *configFile, _ *Config) error { return f.learnedPositions() },
		prefixes: []string{"bert."}, layers: bertLayers, encoder: readBERT, head: pooledHead,
	}
	roberta    = robertaLike("Roberta", "roberta")
	xlmRoberta = robertaLike("XLMRoberta", "xlm-roberta")
)

const bertLayers = "encoder.layer."

// robertaLike is BERT with positions counted from after the padding token's
// id, and another head.
func robertaLike(class, modelType string) family {
	f := bert
	f.class, f.types = class, []string{modelType}
	f.prefixes, f.head = []string{"roberta."}, denseHead
	f.defaults.Pad = 1
	f.shape = func(f *configFile, c *Config) error {
		c.offset(f.Pad)
		return f.learnedPositions()
	}
	return f
}

// offset makes room for the padding token's position.
func (c *Config) offset(pad int) {
	c.Offset = pad + 1
	c.Positions -= c.Offset
}

func readBERT(r *reader, c Config) Encoder {
	return Encoder{
		Word:     r.tensor("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		Position: r.tensor("embeddings.position_embeddings.weight", c.Offset+c.Positions, c.Hidden),
		Type:     r.tensor("embeddings.token_type_embeddings.weight", c.Types, c.Hidden),
		Norm:     r.norm("embeddings.LayerNorm", c.Hidden, true),
		Layers:   r.each(c, bertLayers, func(name string, _ int) Layer { return r.bertLayer(name, c) }),
	}
}

func (r *reader) bertLayer(name string, c Config) Layer {
	return Layer{
		Query:         r.dense(name+"attention.self.query", c.Hidden, c.Hidden, true),
		Key:           r.dense(name+"attention.self.key", c.Hidden, c.Hidden, true),
		Value:         r.dense(name+"attention.self.value", c.Hidden, c.Hidden, true),
		AttentionOut:  r.dense(name+"attention.output.dense", c.Hidden, c.Hidden, true),
		AttentionNorm: r.norm(name+"attention.output.LayerNorm", c.Hidden, true),
		Up:            r.dense(name+"intermediate.dense", c.Hidden, c.Intermediate, true),
		Down:          r.dense(name+"output.dense", c.Intermediate, c.Hidden, true),
		OutputNorm:    r.norm(name+"output.LayerNorm", c.Hidden, true),
	}
}
