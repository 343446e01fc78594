package retrieve

import (
	"cmp"
	"fmt"

	"sluice/store"
)

// Ranking holds the depths and weights of a plan. In a request 0 stands for the
// plan's own choice; in a plan, for what it does not use.
type Ranking struct {
	DenseDepth        int
	LexicalDepth      int
	RRFConstant       int
	PoolDepth         int
	DenseWeight       float64
	LexicalWeight     float64
	LateLexicalWeight float64
}

// Bounds of a request's ranking.
const (
	maxDepth       = lateDepth
	maxRRFConstant = 1000
	maxWeight      = 100
)

// ranking returns the plan's depths and weights.
func (p Plan) ranking() Ranking {
	return Ranking{
		DenseDepth: p.DenseDepth, LexicalDepth: p.LexicalDepth, RRFConstant: p.RRFConstant, PoolDepth: p.PoolDepth,
		DenseWeight: p.DenseWeight, LexicalWeight: p.LexicalWeight, LateLexicalWeight: p.LateLexicalWeight,
	}
}

// tune puts what a request chose in the place of the plan's own. What the plan
// does not use, or is out of bounds, is store.ErrInvalid. A depth is K at least.
func (p *Plan) tune(r Ranking) error {
	rrf := p.fuses() && p.Fusion == RRF // whose weights are 1 unless they are chosen
	err := cmp.Or(
		choose(p, "dense_depth", r.DenseDepth, &p.DenseDepth, false, maxDepth),
		choose(p, "lexical_depth", r.LexicalDepth, &p.LexicalDepth, false, maxDepth),
		choose(p, "pool_depth", r.PoolDepth, &p.PoolDepth, false, maxDepth),
		choose(p, "rrf_constant", r.RRFConstant, &p.RRFConstant, false, maxRRFConstant),
		choose(p, "dense_weight", r.DenseWeight, &p.DenseWeight, rrf, maxWeight),
		choose(p, "lexical_weight", r.LexicalWeight, &p.LexicalWeight, rrf, maxWeight),
		choose(p, "late_lexical_weight", r.LateLexicalWeight, &p.LateLexicalWeight, false, maxWeight),
	)
	for _, depth := range []*int{&p.DenseDepth, &p.LexicalDepth, &p.PoolDepth} {
		if *depth > 0 {
			*depth = max(*depth, p.K)
		}
	}
	return err
}

// choose replaces a value that the plan uses: one that is not 0 already, unless
// it is used all the same.
func choose[T int | float64](p *Plan, name string, value T, of *T, used bool, most T) error {
	switch {
	case value == 0:
		return nil
	case *of == 0 && !used:
		return fmt.Errorf("%w: ranking: the strategy %s has no use for %s; leave it out", store.ErrInvalid, p.Strategy, name)
	case value < 0 || value > most:
		return fmt.Errorf("%w: ranking: %s must be above 0 and at most %v", store.ErrInvalid, name, most)
	}
	*of = value
	return nil
}
