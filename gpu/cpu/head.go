package cpu

import (
	"sluice/gpu"
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

// head turns a sequence's last hidden states into what is asked for.
type head struct {
	kernels     *simd.Set
	pooling     model.Pooling
	projections []stage
	hidden      int
	dimensions  int

	labels      int // 0: there is no classifier
	headPooling model.Pooling
	dense, out  stage
	norm        model.Norm
	epsilon     float64
}

// stage is a map and the function after it.
type stage struct {
	matrix   simd.Matrix
	activate func([]float32)
}

// headScratch is one worker's memory.
type headScratch struct {
	edge simd.Edge
	a, b []float32
}

func newHead(m *model.Model, kernels *simd.Set) *head {
	h := &head{kernels: kernels, pooling: m.Pooling, hidden: m.Config.Hidden, dimensions: m.Dimensions(), epsilon: m.Config.Epsilon}
	h.projections = make([]stage, len(m.Projections))
	for i, p := range m.Projections {
		h.projections[i].set(p.Dense, p.Activation, kernels)
	}
	if c := m.Classifier; c != nil {
		h.labels, h.headPooling, h.norm = len(c.Labels), c.Pooling, c.Norm
		h.dense.set(c.Dense, c.Activation, kernels)
		h.out.set(c.Out, model.Identity, kernels)
	}
	return h
}

func (s *stage) set(d model.Dense, a model.Activation, kernels *simd.Set) {
	pack(&s.matrix, d)
	s.activate = activation(a, kernels)
}

// write fills out for sequence i, whose tokens begin at first, and whose last
// hidden states are x.
func (h *head) write(out gpu.Output, i, first int, x []float32, w *headScratch) {
	if out.Tokens != nil {
		copy(out.Tokens[first*h.hidden:], x)
	}
	if out.Pooled != nil {
		norm := h.embed(out.Pooled[i*h.dimensions:][:h.dimensions], x, w)
		if out.Norms != nil {
			out.Norms[i] = norm
		}
	}
	if out.Logits != nil {
		h.classify(out.Logits[i*h.labels:][:h.labels], x, w)
	}
}

// embed pools, projects and normalises, and returns the length before that.
func (h *head) embed(v, x []float32, w *headScratch) (norm float32) {
	w.a = grow(w.a, h.hidden)
	h.pool(w.a, x, h.pooling)
	for i := range h.projections {
		h.apply(&h.projections[i], w)
	}
	copy(v, w.a)
	return float32(ref.Normalize(v))
}

func (h *head) classify(logits, x []float32, w *headScratch) {
	w.a = grow(w.a, h.hidden)
	h.pool(w.a, x, h.headPooling)
	h.apply(&h.dense, w)
	if h.norm.Gain != nil {
		ref.LayerNorm(w.a, h.norm.Gain, h.norm.Bias, h.epsilon)
	}
	h.apply(&h.out, w)
	copy(logits, w.a)
}

// apply replaces w.a by what s makes of it.
func (h *head) apply(s *stage, w *headScratch) {
	m := &s.matrix
	w.b = grow(w.b, m.Columns)
	h.kernels.MatMul(w.b, m.Columns, w.a, m.Depth, 1, m, 0, m.Panels(), &w.edge)
	if s.activate != nil {
		s.activate(w.b)
	}
	w.a, w.b = w.b, w.a
}

func (h *head) pool(v, x []float32, pooling model.Pooling) {
	switch pooling {
	case model.CLSPooling:
		ref.CLSPool(v, x)
	case model.LastPooling:
		ref.LastPool(v, x)
	default:
		h.mean(v, x)
	}
}

// mean is ref.MeanPool in float32.
func (h *head) mean(v, x []float32) {
	rows := len(x) / len(v)
	copy(v, x)
	for t := 1; t < rows; t++ {
		ref.Add(v, x[t*len(v):][:len(v)])
	}
	for d := range v {
		v[d] /= float32(rows)
	}
}
