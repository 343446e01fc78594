package local

import (
	"context"

	"sluice/index"
	"sluice/kernels/ref"
)

// scanVectors returns the k selected rows with the greatest inner product.
// Every row's product comes from the same routine over the same numbers,
// wherever the row lies, so its score never depends on its neighbours.
func scanVectors(ctx context.Context, parts []part, selections []selection, query []float32, k int) ([]index.Hit, error) {
	if k < 1 {
		return nil, ctx.Err()
	}
	best := topK{k: k}
	for i, p := range parts {
		for _, s := range selections[i].spans {
			for ; s.lo < s.hi; s.lo += min(scanStep, s.hi-s.lo) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				scanSpan(p.seg, span{s.lo, min(s.hi, s.lo+scanStep)}, query, &best)
			}
		}
	}
	return best.sorted(), ctx.Err()
}

func scanSpan(seg *segment, s span, query []float32, best *topK) {
	for slot := s.lo; slot < s.hi; slot++ {
		score := ref.Dot(query, seg.vector(slot))
		if !best.beats(score) {
			continue
		}
		if row := seg.row(slot); best.admits(score, row) {
			best.add(index.Hit{Row: row, Ordinal: seg.ordinalOf(slot), Score: score})
		}
	}
}
