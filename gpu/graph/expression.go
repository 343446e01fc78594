package graph

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"sluice/gpu"
	"sluice/model"
)

type node = gorgonia.Node

// expression is the graph of one sequence: its nodes are made by methods, which
// panic where Gorgonia refuses. What model.Encoder and model.Layer say is said
// here again, in operations on whole tensors.
type expression struct {
	config  model.Config
	weights *weights
	graph   *gorgonia.ExprGraph
	ids     []int32
	kinds   []int32

	known map[*tensor.Dense]*node
	added map[int]*node                // to scores, by window
	turns map[model.Attention][2]*node // cosines and sines
}

func newExpression(c model.Config, w *weights, ids, kinds []int32) *expression {
	return &expression{
		config: c, weights: w, graph: gorgonia.NewGraph(), ids: ids, kinds: kinds,
		known: map[*tensor.Dense]*node{}, added: map[int]*node{}, turns: map[model.Attention][2]*node{},
	}
}

// roots are the nodes of what out asks for, in its order.
func (e *expression) roots(out gpu.Output) (roots []*node) {
	hidden := e.encode()
	if out.Tokens != nil {
		roots = append(roots, hidden)
	}
	if out.Pooled != nil {
		roots = append(roots, e.embed(hidden))
	}
	if out.Logits != nil {
		roots = append(roots, e.classify(hidden))
	}
	return roots
}

// encode is the last hidden states, tokens × hidden.
func (e *expression) encode() *node {
	x := e.norm(e.lookup(), e.weights.norm)
	for i := range e.weights.layers {
		x = e.layer(x, &e.weights.layers[i])
	}
	return e.norm(x, e.weights.final)
}

func (e *expression) layer(x *node, l *layer) *node {
	if e.config.PreNorm {
		x = add(x, e.attend(e.norm(x, l.attentionNorm), l))
		return add(x, e.feed(e.norm(x, l.outputNorm), l))
	}
	x = e.norm(add(x, e.attend(x, l)), l.attentionNorm)
	return e.norm(add(x, e.feed(x, l)), l.outputNorm)
}

func (e *expression) feed(x *node, l *layer) *node {
	up := e.affine(x, l.up)
	if !e.config.Gated {
		return e.affine(activate(up, e.config.Activation), l.down)
	}
	gate := activate(e.affine(x, l.gate), e.config.Activation)
	return e.affine(gorgonia.Must(gorgonia.HadamardProd(gate, up)), l.down)
}

// embed is the pooled and projected vector, of whatever length.
func (e *expression) embed(x *node) *node {
	v := e.pool(x, e.weights.pooling)
	for _, p := range e.weights.projections {
		v = activate(e.affine(v, p.affine), p.activation)
	}
	return v
}

func (e *expression) classify(x *node) *node {
	c := e.weights.classifier
	v := activate(e.affine(e.pool(x, c.pooling), c.dense.affine), c.dense.activation)
	return e.affine(e.norm(v, c.norm), c.out)
}

// pool is 1 × hidden: a row of shares times the tokens.
func (e *expression) pool(x *node, pooling model.Pooling) *node {
	shares := make([]float32, len(e.ids))
	switch pooling {
	case model.CLSPooling:
		shares[0] = 1
	case model.LastPooling:
		shares[len(shares)-1] = 1
	default:
		for i := range shares {
			shares[i] = 1 / float32(len(shares))
		}
	}
	return multiply(e.input(matrix(shares, 1, len(shares))), x)
}

func (e *expression) norm(x *node, n norm) *node {
	if n.gain == nil {
		return x
	}
	return layerNorm(e.config.Epsilon).apply(x, e.input(n.gain), e.input(n.bias))
}

func (e *expression) affine(x *node, a affine) *node {
	bias := e.input(a.bias)
	return gorgonia.Must(gorgonia.BroadcastAdd(multiply(x, e.input(a.weight)), bias, nil, []byte{0}))
}

// input is t as a node. One tensor is one node.
func (e *expression) input(t *tensor.Dense) *node {
	if e.known[t] == nil {
		name := fmt.Sprint("input ", len(e.known)) // nodes of one name would be one node
		e.known[t] = gorgonia.NewTensor(e.graph, t.Dtype(), t.Dims(), gorgonia.WithName(name), gorgonia.WithValue(t))
	}
	return e.known[t]
}

func add(x, y *node) *node      { return gorgonia.Must(gorgonia.Add(x, y)) }
func multiply(x, y *node) *node { return gorgonia.Must(gorgonia.Mul(x, y)) }

// activate applies a, element by element.
func activate(x *node, a model.Activation) *node {
	switch a {
	case model.GELU:
		return gelu.apply(x)
	case model.GELUTanh:
		return geluTanh(x)
	case model.SiLU:
		return gorgonia.Must(gorgonia.HadamardProd(x, gorgonia.Must(gorgonia.Sigmoid(x))))
	case model.ReLU:
		return gorgonia.Must(gorgonia.Rectify(x))
	case model.Tanh:
		return gorgonia.Must(gorgonia.Tanh(x))
	}
	return x
}

// geluTanh is x/2·(1 + tanh(√(2/π)·(x + 0.044715x³))).
func geluTanh(x *node) *node {
	cube := scale(gorgonia.Must(gorgonia.Cube(x)), 0.044715)
	tanh := gorgonia.Must(gorgonia.Tanh(scale(add(x, cube), math.Sqrt(2/math.Pi))))
	half := scale(x, 0.5)
	return add(half, gorgonia.Must(gorgonia.HadamardProd(half, tanh)))
}

func scale(x *node, factor float64) *node {
	return multiply(x, gorgonia.NewConstant(float32(factor)))
}
