package cpu

import (
	"sluice/kernels/simd"
	"sluice/model"
)

// workspace is the memory of one batch; it grows to the largest seen. Each
// matrix has one row per token.
type workspace struct {
	x       []float32 // Hidden: the residual stream
	qkv     []float32 // 3 × Hidden
	context []float32 // Hidden: what attention gathered
	middle  []float32 // Intermediate
	in      []float32 // Hidden: a block's input, where that is not x
	gate    []float32 // Intermediate, in gated blocks
	y       []float32 // Hidden: a block's output before it is added
	workers []scratch
}

// scratch belongs to one worker during a task.
type scratch struct {
	edge         simd.Edge
	keys, values simd.Matrix
	scores       []float32
	head         headScratch
}

func (w *workspace) resize(tokens int, c model.Config) {
	w.x = grow(w.x, tokens*c.Hidden)
	w.qkv = grow(w.qkv, tokens*3*c.Hidden)
	w.context = grow(w.context, tokens*c.Hidden)
	w.middle = grow(w.middle, tokens*c.Intermediate)
	w.y = grow(w.y, tokens*c.Hidden)
	if c.PreNorm {
		w.in = grow(w.in, tokens*c.Hidden)
	}
	if c.Gated {
		w.gate = grow(w.gate, tokens*c.Intermediate)
	}
}

// grow returns a slice of length n, whose content is undefined.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
