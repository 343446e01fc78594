package retrieve

import (
	"fmt"
	"sync"

	"sluice/retrieve/complexity"
	"sluice/store"
)

// Probabilities from which words alone, and from which a fusion without late
// interaction, are not thought to suffice.
const (
	hybridFrom = 0.3
	lateFrom   = 0.7
)

// router chooses a query's strategy by its text.
type router struct {
	model   complexity.Model
	version string
}

var trainedRouter = sync.OnceValue(func() router {
	model := complexity.Trained()
	return router{model, model.Version()}
})

func (r router) choose(query string) string { return chosenAt(r.model.Of(query)) }

func chosenAt(complexity float64) string {
	switch {
	case complexity < hybridFrom:
		return Sparse
	case complexity < lateFrom:
		return Hybrid
	}
	return HybridLate
}

// route puts a strategy in the place of Auto. One that the request cannot feed
// gives way to the fullest that it can.
func (p *Plan) route(r Request, g given) error {
	switch {
	case !g.lexical():
		return fmt.Errorf("%w: the strategy %s needs query in the request; bring it, or leave strategy out", store.ErrInvalid, Auto)
	case r.Fusion != "" || r.Ranking != Ranking{}:
		return fmt.Errorf("%w: the strategy %s chooses for itself; leave fusion and ranking out, or name another", store.ErrInvalid, Auto)
	}
	router := trainedRouter()
	p.Router, p.Strategy = router.version, router.choose(g.text)
	if g.lacks(p.Strategy) != "" {
		p.Strategy = g.strategy()
	}
	return nil
}
