package local

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"sluice/index/local/ivf"
)

// Held is a copy of a segment's vectors that something else searches, as a GPU.
type Held interface {
	// Search returns the k rows of greatest product with the query, Most at most,
	// among those of the mask. An error: the index searches by itself.
	Search(ctx context.Context, query []float32, mask Mask, k int) (Near, error)
	Most() int
	// Close returns when the vectors are read no more.
	Close()
}

// Mask is a bit for each row. Masks can be compared; equal ones have equal bits.
type Mask = interface{ Words() []uint64 }

// Near is rows, the best first and of equal ones the smaller, and their products,
// each within Slack of that in float32.
type Near = struct {
	Rows     []uint32
	Products []float32
	Slack    float32
}

const (
	fewHeld    = 1 << 12 // rows are scored here sooner than a copy is asked; to be measured on a GPU
	leastAsked = 64      // rows of a copy, so that what is left is provably worse
)

// hold has a copy made of a sealed segment.
func (s *segment) hold(o Options) {
	if o.Hold != nil && s.rows() >= o.HoldRows {
		s.held = o.Hold(s.vectors, s.dims)
	}
}

// mask is what of a segment a Set admits and is live.
type mask struct {
	allowed *ivf.Allowed
	live    *uint64 // the first word; nil: all are live
	rows    int
}

func (m mask) Words() []uint64 {
	words := m.allowed.Words(m.rows)
	if m.live == nil {
		return words
	}
	both := make([]uint64, len(words))
	for i, live := range unsafe.Slice(m.live, len(words)) {
		both[i] = words[i] & live
	}
	return both
}

// searchHeld has a part's copy find what is among the best of it, and reports
// whether it has. Scores are this index's; where it can't be proven that no row
// is left out, the copy has not.
func (s *denseSearch) searchHeld(ctx context.Context, part int, a admitted) bool {
	p := s.state.parts[part]
	held := p.seg.held
	if held == nil || p.seg.distrusted.Load() || a.Len() <= min(fewHeld, p.seg.rows()/16) {
		return false
	}
	asked := min(max(2*s.best.k, leastAsked), held.Most())
	if asked <= s.best.k {
		return false
	}
	near, err := held.Search(ctx, s.query, mask{a.Allowed, unsafe.SliceData(p.live), p.seg.rows()}, asked)
	if err != nil {
		return false
	}
	if err := s.check(p, a, near); err != nil {
		p.seg.distrusted.Store(true)
		s.log.Error("a copy of an index's vectors gives wrong answers and is no longer used: is the GPU sound?", "why", err)
		return false
	}
	if !s.proven(p, a, near, asked) {
		return false
	}
	s.add(part, near.Rows)
	return true
}

// check scores what was found in s.scores. An error: no sound copy answers so.
func (s *denseSearch) check(p part, a admitted, near Near) error {
	for i, slot := range near.Rows {
		switch {
		case int64(slot) >= int64(p.seg.rows()) || !a.Has(slot) || p.live != nil && p.live[slot/64]>>(slot%64)&1 == 0:
			return fmt.Errorf("row %d was not asked for", slot)
		case i > 0 && keyOf(near.Products[i], slot) >= keyOf(near.Products[i-1], near.Rows[i-1]):
			return fmt.Errorf("row %d is out of order", slot)
		}
	}
	s.dot(p.seg, near.Rows)
	for i, score := range s.scores {
		if off := math.Abs(float64(score) - float64(near.Products[i])); !(off <= float64(near.Slack)) {
			return fmt.Errorf("a product of %g instead of %g", near.Products[i], score)
		}
	}
	return nil
}

// proven reports whether no row that was not found is among the best: either
// all were found, or the last is worse than k of them by more than both may be off.
func (s *denseSearch) proven(p part, a admitted, near Near, asked int) bool {
	n := len(near.Rows)
	if n < asked {
		var all []uint32
		all, s.live = a.Live(p.live, s.live)
		return n == len(all)
	}
	beyond := float64(near.Products[n-1]) + float64(near.Slack)
	if float64(s.best.floor()) > beyond {
		return true
	}
	better := 0
	for _, score := range s.scores {
		if float64(score) > beyond {
			better++
		}
	}
	return better >= s.best.k
}
