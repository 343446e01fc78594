package graph

import (
	"cmp"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"sluice/kernels/ref"
	"sluice/model"
)

// attend is the layer's self-attention, tokens × hidden: per head
// softmax(q·kᵀ/√size + added)·v.
func (e *expression) attend(x *node, l *layer) *node {
	query, key := e.turn(e.heads(x, l.query), l.attention), e.turn(e.heads(x, l.key), l.attention)
	scores := scale(gorgonia.Must(gorgonia.BatchedMatMul(query, key, false, true)), 1/math.Sqrt(float64(e.config.HeadSize())))
	if added := e.addition(l.attention.Window); added != nil {
		scores = add(scores, added)
	}
	context := gorgonia.Must(gorgonia.BatchedMatMul(softmax.apply(scores), e.heads(x, l.value)))
	rows := gorgonia.Must(gorgonia.Transpose(context, 1, 0, 2))
	return e.affine(gorgonia.Must(gorgonia.Reshape(rows, tensor.Shape{len(e.ids), e.config.Hidden})), l.out)
}

// heads is x mapped by a, heads × tokens × size.
func (e *expression) heads(x *node, a affine) *node {
	shape := tensor.Shape{len(e.ids), e.config.Heads, e.config.HeadSize()}
	return gorgonia.Must(gorgonia.Transpose(gorgonia.Must(gorgonia.Reshape(e.affine(x, a), shape)), 1, 0, 2))
}

// turn applies the rotary embedding, if the layer has one.
func (e *expression) turn(x *node, a model.Attention) *node {
	if a.Theta == 0 {
		return x
	}
	a.Window = 0
	if _, known := e.turns[a]; !known {
		cos, sin := ref.RopeTable(len(e.ids), e.config.HeadSize(), a.Theta, cmp.Or(a.Stretch, 1))
		half := e.config.HeadSize() / 2
		e.turns[a] = [2]*node{e.input(matrix(cos, 1, len(e.ids), half)), e.input(matrix(sin, 1, len(e.ids), half))}
	}
	return rotary(len(e.ids)).apply(x, e.turns[a][0], e.turns[a][1])
}

// addition is what scores get, heads × tokens × tokens: the table of distances,
// and minus infinity outside the window. It is nil where the model has neither.
func (e *expression) addition(window int) *node {
	if e.weights.relative == nil && window == 0 {
		return nil
	}
	if e.added[window] == nil {
		e.added[window] = e.input(matrix(e.additions(window), e.config.Heads, len(e.ids), len(e.ids)))
	}
	return e.added[window]
}

func (e *expression) additions(window int) (all []float32) {
	for head := range e.config.Heads {
		for i := range e.ids {
			for j := range e.ids {
				all = append(all, e.additionTo(head, j-i, window))
			}
		}
	}
	return all
}

func (e *expression) additionTo(head, distance, window int) float32 {
	if window > 0 && max(distance, -distance) > window {
		return float32(math.Inf(-1))
	}
	if e.weights.relative == nil {
		return 0
	}
	return e.weights.relative[ref.RelativeBucket(distance, e.config.Buckets)*e.config.Heads+head]
}
