package ivf

import (
	"context"
	"math"

	"sluice/kernels/ref"
)

// candidates is among how many of the nearest centroids a row's second list is chosen.
const candidates = 8

// assigned says which lists each row is in, and where in them.
type assigned struct {
	centroids []float32   // rotated, row-major
	of        [][2]uint32 // by row: its lists
	places    [][2]uint32 // by row: its lanes, counted over all blocks
	starts    []uint32    // by list and one more: its first block
}

func (a *assigned) centroid(list, padded int) []float32 {
	return a.centroids[list*padded:][:padded]
}

func (b *builder) assign(ctx context.Context) (a assigned, err error) {
	if a.centroids, err = b.train(ctx, b.options.Lists); err != nil {
		return a, err
	}
	a.of = make([][2]uint32, b.rows)
	scorer := b.space.newScorer(a.centroids)
	err = b.parallel(ctx, b.rows, func(w *worker, lo, hi int) {
		padded := b.space.padded
		for row := lo; row < hi; row++ {
			b.space.rotate(w.rotated[(row-lo)*padded:][:padded], b.vector(row))
		}
		scores := scorer.score(&w.scoring, w.rotated[:(hi-lo)*padded])
		for i := range hi - lo {
			x := w.rotated[i*padded:][:padded]
			a.of[lo+i] = b.choose(&a, x, scores[i*scorer.lists:][:scorer.lists])
		}
	})
	a.place(b.options.Lists)
	return a, err
}

// choose returns a row's two lists: the nearest, and of the next nearest the
// one that minimises ‖r′‖² + λ⟨r,r′⟩²/‖r‖².
func (b *builder) choose(a *assigned, x, scores []float32) [2]uint32 {
	var near [candidates]uint32
	n := nearestLists(&near, scores)
	dot := b.space.kernels.Dot
	centroid := func(i int) []float32 { return a.centroid(int(near[i]), b.space.padded) }
	square, first := dot(x, x), centroid(0)
	xFirst := dot(x, first)
	residual := max(square-2*xFirst+dot(first, first), tiny)
	lists, least := [2]uint32{near[0], near[0]}, float32(math.Inf(1))
	for i := 1; i < n; i++ {
		c := centroid(i)
		xc := dot(x, c)
		along := square - xFirst - xc + dot(first, c)
		loss := square - 2*xc + dot(c, c) + spread*along*along/residual
		if loss < least {
			least, lists[1] = loss, near[i]
		}
	}
	return lists
}

// nearestLists writes the lists of the greatest scores, best first, and
// returns how many there are.
func nearestLists(near *[candidates]uint32, scores []float32) (n int) {
	var best [candidates]float32
	worst := float32(math.Inf(-1))
	for list, score := range scores {
		if score <= worst {
			continue
		}
		at := min(n, candidates-1)
		for ; at > 0 && best[at-1] < score; at-- {
			best[at], near[at] = best[at-1], near[at-1]
		}
		best[at], near[at] = score, uint32(list)
		n = min(n+1, candidates)
		if n == candidates {
			worst = best[n-1]
		}
	}
	return n
}

// place lays the lists out in blocks, the rows of each in ascending order. A
// row whose lists are one is there once.
func (a *assigned) place(lists int) {
	counts := make([]uint32, lists)
	a.eachPlace(func(_, _ int, list uint32) { counts[list]++ })
	a.starts = make([]uint32, lists+1)
	next := make([]uint32, lists)
	for list, n := range counts {
		next[list] = a.starts[list] * ref.CodeLanes
		a.starts[list+1] = a.starts[list] + (n+ref.CodeLanes-1)/ref.CodeLanes
	}
	a.places = make([][2]uint32, len(a.of))
	a.eachPlace(func(row, i int, list uint32) {
		a.places[row][i] = next[list]
		next[list]++
	})
	for row, of := range a.of {
		if of[0] == of[1] {
			a.places[row][1] = a.places[row][0]
		}
	}
}

func (a *assigned) eachPlace(visit func(row, i int, list uint32)) {
	for row, of := range a.of {
		visit(row, 0, of[0])
		if of[1] != of[0] {
			visit(row, 1, of[1])
		}
	}
}

// setLists writes what the index knows of the centroids, and empty lists.
func (x *Index) setLists(a *assigned) {
	copy(x.starts, a.starts)
	for i := range x.ids {
		x.ids[i] = none
	}
	words, block := x.space.padded/32, ref.CodeBlock(x.space.padded)
	for at := 0; at < len(x.codes); at += block {
		for lane := range ref.CodeLanes {
			setFactors(x.codes[at:], lane, words, impossible, 0)
		}
	}
	x.setCentroids(a.centroids)
}

// setCentroids encodes the centroids around their mean. The offsets of their
// codes have −½‖c‖² added, so that estimates are in the order of distance; the
// mean's own product with a query, the same for all, is left out.
func (x *Index) setCentroids(centroids []float32) {
	padded := x.space.padded
	words, block := padded/32, ref.CodeBlock(padded)
	centre, all := make([]float32, padded), make([]uint32, x.lists)
	for i := range all {
		all[i] = uint32(i)
	}
	mean(centre, centroids, all)
	for i := range len(x.centroidCodes) / block * ref.CodeLanes {
		code, lane := x.centroidCodes[i/ref.CodeLanes*block:][:block], i%ref.CodeLanes
		if i >= x.lists {
			setFactors(code, lane, words, impossible, 0)
			continue
		}
		c := centroids[i*padded:][:padded]
		x.norms[i] = x.space.kernels.Dot(c, c)
		encode(code, lane, c, centre)
		addOffset(code, lane, words, -0.5*x.norms[i])
		toBytes(x.centroids[i*padded:][:padded], c, x.centroidStep)
	}
}
