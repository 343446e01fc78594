package ivf

import (
	"math"
	"slices"
)

// found collects rows with their products in steps, and knows which can still
// be among the k best.
type found struct {
	k       int
	best    []int32 // the k greatest products, a heap with the least on top
	floor   int32   // what a product must reach
	margin  int32   // how far below the k-th best that is
	entries []entry
}

type entry struct {
	product int32
	row     uint32
}

// reset begins a search. Products below floor are not added.
func (f *found) reset(k int, floor, margin int32) {
	f.k, f.floor, f.margin = k, floor, margin
	f.best, f.entries = f.best[:0], f.entries[:0]
}

func (f *found) add(product int32, row uint32) {
	if len(f.entries) == cap(f.entries) {
		f.prune()
		f.entries = slices.Grow(f.entries, len(f.entries)/2+1) // so that pruning is rare
	}
	f.entries = append(f.entries, entry{product, row})
	switch {
	case len(f.best) < f.k:
		f.best = append(f.best, product)
		f.up()
	case product > f.best[0]:
		f.best[0] = product
		f.down()
	default:
		return
	}
	if len(f.best) == f.k {
		f.floor = max(f.floor, f.best[0]-f.margin)
	}
}

// full tells whether k products were added.
func (f *found) full() bool { return len(f.best) == f.k }

// kth is the k-th best product, of steps of so much; -Inf: there are fewer.
func (f *found) kth(unit float32) float32 {
	if !f.full() {
		return float32(math.Inf(-1))
	}
	return float32(f.best[0]) * unit
}

// prune removes what the floor has overtaken.
func (f *found) prune() {
	f.entries = slices.DeleteFunc(f.entries, func(e entry) bool { return e.product < f.floor })
}

func (f *found) up() {
	for i := len(f.best) - 1; i > 0; {
		parent := (i - 1) / 2
		if f.best[parent] <= f.best[i] {
			return
		}
		f.best[parent], f.best[i] = f.best[i], f.best[parent]
		i = parent
	}
}

func (f *found) down() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(f.best) {
			return
		}
		if child+1 < len(f.best) && f.best[child+1] < f.best[child] {
			child++
		}
		if f.best[i] <= f.best[child] {
			return
		}
		f.best[i], f.best[child] = f.best[child], f.best[i]
		i = child
	}
}
