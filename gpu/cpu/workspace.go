package cpu

import "sluice/kernels/simd"

// workspace is the memory of one batch; it grows to the largest seen. Each
// matrix has one row per token.
type workspace struct {
	x       []float32 // Hidden: the residual stream
	qkv     []float32 // 3 × Hidden
	context []float32 // Hidden: what attention gathered
	middle  []float32 // Intermediate
	y       []float32 // Hidden: a block's output before it is added
	workers []scratch
}

// scratch belongs to one worker during a task.
type scratch struct {
	edge         simd.Edge
	keys, values simd.Matrix
	scores       []float32
}

func (w *workspace) resize(tokens, hidden, intermediate int) {
	w.x = grow(w.x, tokens*hidden)
	w.qkv = grow(w.qkv, tokens*3*hidden)
	w.context = grow(w.context, tokens*hidden)
	w.middle = grow(w.middle, tokens*intermediate)
	w.y = grow(w.y, tokens*hidden)
}

// grow returns a slice of length n, whose content is undefined.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
