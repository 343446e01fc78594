package ivf

import (
	"math"
	"slices"

	"sluice/kernels/ref"
)

// probe is a list to visit.
type probe struct {
	list     uint32
	product  float32 // of the query and the centroid
	distance float32 // between them, squared
}

// probing is the memory of the choice of lists.
type probing struct {
	estimates []float32
	masks     []uint16
	near      []uint32
	products  []int32
	probes    []probe
	sorted    []probe
	counts    [buckets + 1]uint32
}

// Lists are first estimated by codes; so many more than wanted are scored.
const (
	estimatedFactor = 2
	estimatedMore   = 32
)

// nearest fills s.probes with at least want lists, if there are as many, and
// about that number, nearest first.
func (x *Index) nearest(q *Query, want int, s *probing) {
	near := x.estimateLists(q, want, s)
	s.products = slices.Grow(s.products[:0], len(near))[:len(near)]
	x.space.kernels.DotBytes(q.bytes, x.centroids, near, s.products)
	s.probes = slices.Grow(s.probes[:0], len(near))[:len(near)]
	square, step := q.norm*q.norm, q.step*x.centroidStep
	for i, list := range near {
		product := float32(s.products[i]-q.offset) * step
		s.probes[i] = probe{list, product, max(square+x.norms[list]-2*product, 0)}
	}
	s.sort()
	s.probes = s.probes[:min(want, len(s.probes))]
}

// estimateLists returns a few times as many lists as wanted, near ones.
func (x *Index) estimateLists(q *Query, want int, s *probing) []uint32 {
	blocks := len(x.centroidCodes) / ref.CodeBlock(x.space.padded)
	n := blocks * ref.CodeLanes
	s.near = slices.Grow(s.near[:0], n)[:n]
	more := want*estimatedFactor + estimatedMore
	if more >= x.lists/2 {
		s.near = s.near[:x.lists]
		for i := range s.near {
			s.near[i] = uint32(i)
		}
		return s.near
	}
	s.estimates, s.masks = slices.Grow(s.estimates[:0], n)[:n], slices.Grow(s.masks[:0], blocks)[:blocks]
	x.space.kernels.ScanCodes(&q.code, x.centroidCodes, nil, 0, q.shift, 0, s.estimates, s.masks)
	return s.near[:x.greatestEstimates(more, s)]
}

// greatestEstimates collects the lists of at least want estimates, and not
// many more, by bisection of the threshold.
func (x *Index) greatestEstimates(want int, s *probing) (n int) {
	estimates := s.estimates[:x.lists]
	low, high := bounds(estimates)
	for range 12 {
		middle := low + (high-low)/2
		n = x.space.kernels.Above(estimates, middle, s.near)
		if n >= want && n <= want+want/4 {
			return n
		}
		if n < want {
			high = middle
		} else {
			low = middle
		}
	}
	return x.space.kernels.Above(estimates, low, s.near)
}

// bounds returns the least and the greatest of numbers of which none is NaN,
// which slices.Min and Max would look for.
func bounds(values []float32) (least, greatest float32) {
	least, greatest = values[0], values[0]
	for _, v := range values {
		if v < least {
			least = v
		}
		if v > greatest {
			greatest = v
		}
	}
	return least, greatest
}

const buckets = 512

// sort orders the probes by distance, as finely as so many buckets tell them apart.
func (s *probing) sort() {
	least, most := float32(math.Inf(1)), float32(0)
	for i := range s.probes {
		d := s.probes[i].distance
		if d < least {
			least = d
		}
		if d > most {
			most = d
		}
	}
	scale := (buckets - 1) / max(most-least, tiny)
	clear(s.counts[:])
	bucket := func(p probe) int { return min(max(int((p.distance-least)*scale), 0), buckets-1) }
	for _, p := range s.probes {
		s.counts[bucket(p)+1]++
	}
	for i := range buckets {
		s.counts[i+1] += s.counts[i]
	}
	s.sorted = slices.Grow(s.sorted[:0], len(s.probes))[:len(s.probes)]
	for _, p := range s.probes {
		at := &s.counts[bucket(p)]
		s.sorted[*at] = p
		*at++
	}
	s.probes, s.sorted = s.sorted, s.probes
}
