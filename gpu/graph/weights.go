package graph

import (
	"gorgonia.org/tensor"

	"sluice/model"
)

// weights are a model's numbers as tensors, which graphs share and none
// changes.
type weights struct {
	word, position, kind *tensor.Dense // rows × hidden; nil: not part of the sum
	norm, final          norm
	layers               []layer
	relative             []float32 // as in model.Encoder

	pooling     model.Pooling
	projections []stage
	classifier  *classifier // nil: none
}

// affine is a map x·weight + bias, In × Out and 1 × Out.
type affine struct{ weight, bias *tensor.Dense }

// norm's gain and bias are vectors; without a gain it changes nothing.
type norm struct{ gain, bias *tensor.Dense }

// stage is a map and the function after it.
type stage struct {
	affine
	activation model.Activation
}

type layer struct {
	query, key, value, out affine
	attentionNorm          norm
	up, gate, down         affine
	outputNorm             norm
	attention              model.Attention
}

type classifier struct {
	pooling model.Pooling
	dense   stage
	norm    norm
	out     affine
}

func newWeights(m *model.Model) *weights {
	e, hidden := m.Encoder, m.Config.Hidden
	w := &weights{
		word: table(e.Word, hidden), position: table(e.Position, hidden), kind: table(e.Type, hidden),
		norm: newNorm(e.Norm), final: newNorm(e.Final), relative: e.Relative, pooling: m.Pooling,
	}
	for i, l := range e.Layers {
		w.layers = append(w.layers, newLayer(l, m.Config.Attention[i]))
	}
	for _, p := range m.Projections {
		w.projections = append(w.projections, stage{newAffine(p.Dense), p.Activation})
	}
	if c := m.Classifier; c != nil {
		w.classifier = &classifier{c.Pooling, stage{newAffine(c.Dense), c.Activation}, newNorm(c.Norm), newAffine(c.Out)}
	}
	return w
}

func newLayer(l model.Layer, a model.Attention) layer {
	return layer{
		query: newAffine(l.Query), key: newAffine(l.Key), value: newAffine(l.Value), out: newAffine(l.AttentionOut),
		attentionNorm: newNorm(l.AttentionNorm),
		up:            newAffine(l.Up), gate: newAffine(l.Gate), down: newAffine(l.Down),
		outputNorm: newNorm(l.OutputNorm), attention: a,
	}
}

// newAffine is empty where the model has no such map.
func newAffine(d model.Dense) affine {
	if d.Out == 0 {
		return affine{}
	}
	return affine{transposed(d.Weight, d.Out, d.In), matrix(d.Bias, 1, d.Out)}
}

func newNorm(n model.Norm) norm {
	if n.Gain == nil {
		return norm{}
	}
	return norm{matrix(n.Gain, 1, len(n.Gain)), matrix(n.Bias, 1, len(n.Bias))}
}

// table is nil where the model has none.
func table(x []float32, width int) *tensor.Dense {
	if x == nil {
		return nil
	}
	return matrix(x, len(x)/width, width)
}

// matrix lends x to a tensor.
func matrix(x []float32, shape ...int) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))
}
