package retrieve

import (
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
	rrf := p.fuses() && p.Fusion == RRF
	for _, d := range []struct {
		name  string
		value int
		of    *int
		most  int
		least int
	}{
		{"dense_depth", r.DenseDepth, &p.DenseDepth, maxDepth, p.K},
		{"lexical_depth", r.LexicalDepth, &p.LexicalDepth, maxDepth, p.K},
		{"rrf_constant", r.RRFConstant, &p.RRFConstant, maxRRFConstant, 1},
		{"pool_depth", r.PoolDepth, &p.PoolDepth, maxDepth, p.K},
	} {
		if d.value == 0 {
			continue
		}
		if err := p.tunable(d.name, *d.of != 0, d.value > 0 && d.value <= d.most, d.most); err != nil {
			return err
		}
		*d.of = max(d.value, d.least)
	}
	for _, w := range []struct {
		name  string
		value float64
		of    *float64
		used  bool
	}{
		{"dense_weight", r.DenseWeight, &p.DenseWeight, rrf},
		{"lexical_weight", r.LexicalWeight, &p.LexicalWeight, rrf},
		{"late_lexical_weight", r.LateLexicalWeight, &p.LateLexicalWeight, false},
	} {
		if w.value == 0 {
			continue
		}
		if err := p.tunable(w.name, *w.of != 0 || w.used, w.value > 0 && w.value <= maxWeight, maxWeight); err != nil {
			return err
		}
		*w.of = w.value
	}
	return nil
}

func (p *Plan) tunable(name string, used, within bool, most int) error {
	switch {
	case !used:
		return fmt.Errorf("%w: ranking: the strategy %s has no use for %s; leave it out", store.ErrInvalid, p.Strategy, name)
	case !within:
		return fmt.Errorf("%w: ranking: %s must be above 0 and at most %d", store.ErrInvalid, name, most)
	}
	return nil
}
