package model

import (
	"fmt"

	"sluice/model/safetensors"
)

// Dense is an affine map y = Wx + b; Weight is Out × In, row-major.
type Dense struct {
	Weight, Bias []float32
	In, Out      int
}

// Norm is a layer normalisation's gain and bias, one each per dimension.
type Norm struct{ Gain, Bias []float32 }

// Layer is one encoder layer: self-attention and a feed-forward block, each
// added to its input and then normalised.
type Layer struct {
	Query, Key, Value Dense
	AttentionOut      Dense
	AttentionNorm     Norm
	Up, Down          Dense
	OutputNorm        Norm
}

// Encoder holds a BERT encoder's weights as float32. Word, Position and Type
// are tables of Hidden-wide rows, summed and then normalised.
type Encoder struct {
	Word, Position, Type []float32
	Norm                 Norm
	Layers               []Layer
}

// bertReader reads tensors by their BERT names and keeps the first error.
type bertReader struct {
	archive *safetensors.Archive
	prefix  string // "bert." in checkpoints of models with a head
	err     error
}

func readBERT(a *safetensors.Archive, c Config) (Encoder, error) {
	r := &bertReader{archive: a}
	if a.Has("bert.embeddings.word_embeddings.weight") {
		r.prefix = "bert."
	}
	e := Encoder{
		Word:     r.tensor("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		Position: r.tensor("embeddings.position_embeddings.weight", c.Positions, c.Hidden),
		Type:     r.tensor("embeddings.token_type_embeddings.weight", c.Types, c.Hidden),
		Norm:     r.norm("embeddings.LayerNorm", c.Hidden),
	}
	for i := 0; i < c.Layers && r.err == nil; i++ {
		e.Layers = append(e.Layers, r.layer(fmt.Sprintf("encoder.layer.%d.", i), c))
	}
	return e, r.err
}

func (r *bertReader) layer(name string, c Config) Layer {
	return Layer{
		Query:         r.dense(name+"attention.self.query", c.Hidden, c.Hidden),
		Key:           r.dense(name+"attention.self.key", c.Hidden, c.Hidden),
		Value:         r.dense(name+"attention.self.value", c.Hidden, c.Hidden),
		AttentionOut:  r.dense(name+"attention.output.dense", c.Hidden, c.Hidden),
		AttentionNorm: r.norm(name+"attention.output.LayerNorm", c.Hidden),
		Up:            r.dense(name+"intermediate.dense", c.Hidden, c.Intermediate),
		Down:          r.dense(name+"output.dense", c.Intermediate, c.Hidden),
		OutputNorm:    r.norm(name+"output.LayerNorm", c.Hidden),
	}
}

func (r *bertReader) dense(name string, in, out int) Dense {
	return Dense{
		Weight: r.tensor(name+".weight", out, in),
		Bias:   r.tensor(name+".bias", out),
		In:     in, Out: out,
	}
}

// norm knows the names that checkpoints converted from TensorFlow have.
func (r *bertReader) norm(name string, size int) Norm {
	gain, bias := name+".weight", name+".bias"
	if r.archive.Has(r.prefix + name + ".gamma") {
		gain, bias = name+".gamma", name+".beta"
	}
	return Norm{r.tensor(gain, size), r.tensor(bias, size)}
}

func (r *bertReader) tensor(name string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	values, err := r.archive.Float32(r.prefix+name, shape...)
	r.err = err
	return values
}
