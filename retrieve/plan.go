package retrieve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"sluice/index/late"
	"sluice/store"
)

// Strategies a request may name.
const (
	Sparse       = "sparse"
	Dense        = "dense"
	Late         = "late"
	Hybrid       = "hybrid"
	HybridLate   = "hybrid-late"
	HybridRerank = "hybrid-rerank"
	Auto         = "auto" // Sparse, Hybrid or HybridLate, by the query's text
)

// Fusions that the strategies of both legs may name.
const (
	RRF   = "rrf"
	Score = "score"
)

var (
	strategies = []string{Sparse, Dense, Hybrid, HybridLate, HybridRerank, Late, Auto}
	fusions    = []string{RRF, Score}
)

const (
	defaultFusion = Score

	denseDepth   = 70
	lexicalDepth = 100
	rrfConstant  = 60
	poolDepth    = 30
	scanRows     = 4000
	lateDepth    = 1000

	denseWeight   = 1    // of a cosine
	lexicalWeight = 0.07 // of BM25's sum

	lateLexicalWeight = 0.4
)

// Bounds of a request's K.
const (
	MaxK     = 100
	DefaultK = 10 // for 0
)

// Plan is all that decides how a query is answered, its text and principal
// aside. Equal hashes mean comparable results.
type Plan struct {
	Strategy      string  `json:"strategy"`         // never Auto, but what that chose
	Router        string  `json:"router,omitempty"` // version of the model that chose it; "": the request did
	K             int     `json:"k"`
	DenseDepth    int     `json:"dense_depth,omitempty"`
	LexicalDepth  int     `json:"lexical_depth,omitempty"`
	Fusion        string  `json:"fusion,omitempty"`
	RRFConstant   int     `json:"rrf_constant,omitempty"`
	PoolDepth     int     `json:"pool_depth,omitempty"`   // best fused rows that are scored again
	DenseWeight   float64 `json:"dense_weight,omitempty"` // with the fusion RRF none is 1
	LexicalWeight float64 `json:"lexical_weight,omitempty"`
	ScanRows      int     `json:"scan_rows,omitempty"` // rows up to which all are scored, without legs
	Codes         string  `json:"codes,omitempty"`     // what late interaction works on
	// The lexical leg's weight beside late interaction's, which is 1.
	LateLexicalWeight float64 `json:"late_lexical_weight,omitempty"`
	Model             string  `json:"model,omitempty"`
	Reranker          string  `json:"reranker,omitempty"`
	Analyzer          string  `json:"analyzer,omitempty"`
}

// models are the digests of those that a plan may need, and the kind of the
// token codes; no reranker is "".
type models struct {
	embedder, reranker string
	codes              late.Kind
}

// newPlan makes the plan of a request with what it brings, filling in defaults;
// what it does not know, or cannot feed, is store.ErrInvalid.
func newPlan(r Request, g given, m models, s store.Settings) (Plan, error) {
	p := Plan{Strategy: cmp.Or(r.Strategy, g.strategy()), K: cmp.Or(r.K, DefaultK), Fusion: r.Fusion}
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	if p.Strategy == Auto {
		if err := p.route(r, g); err != nil {
			return Plan{}, err
		}
	}
	if err := p.checkFeed(g, s); err != nil {
		return Plan{}, err
	}
	switch p.Strategy {
	case Sparse:
		p.lexical(max(lexicalDepth, p.K), s)
	case Dense:
		p.dense(max(denseDepth, p.K), m)
	case Late:
		p.late(g, m, s)
	default:
		p.hybrid(m, s)
	}
	if err := p.tune(r.Ranking); err != nil {
		return Plan{}, err
	}
	return p, nil
}

func (p *Plan) lexical(depth int, s store.Settings) { p.LexicalDepth, p.Analyzer = depth, s.Analyzer }
func (p *Plan) dense(depth int, m models)           { p.DenseDepth, p.Model = depth, m.embedder }

// hybrid plans both legs, their fusion, and what ranks the pool again.
func (p *Plan) hybrid(m models, s store.Settings) {
	p.dense(max(denseDepth, p.K), m)
	p.lexical(max(lexicalDepth, p.K), s)
	p.Fusion = cmp.Or(p.Fusion, defaultFusion)
	if p.Fusion == RRF {
		p.RRFConstant = rrfConstant
	} else {
		p.DenseWeight, p.LexicalWeight = denseWeight, lexicalWeight
	}
	if p.Strategy == HybridLate {
		p.Codes, p.LateLexicalWeight = m.codes.String(), lateLexicalWeight
	}
	if p.Strategy == HybridRerank {
		p.Reranker = m.reranker
	}
	if p.Strategy != Hybrid {
		p.PoolDepth = max(poolDepth, p.K)
	}
}

// late plans a scan, and legs that bring candidates where there is too much to
// scan, as far as they can be fed.
func (p *Plan) late(g given, m models, s store.Settings) {
	p.ScanRows, p.Codes, p.Model = scanRows, m.codes.String(), m.embedder
	if g.dense() {
		p.dense(lateDepth, m)
	}
	if g.lexical() {
		p.lexical(lateDepth, s)
	}
	p.RRFConstant, p.PoolDepth = rrfConstant, 2*lateDepth
}

// fuses reports whether the request may choose a fusion.
func (p Plan) fuses() bool {
	return p.Strategy == Hybrid || p.Strategy == HybridLate || p.Strategy == HybridRerank
}

// checkFeed compares the strategy with what there is to search with and in.
func (p Plan) checkFeed(g given, s store.Settings) error {
	what := g.lacks(p.Strategy)
	switch {
	case p.Strategy == Late && s.CodeBits == 0, p.Strategy == HybridLate && s.Brings() && s.CodeBits == 0:
		return fmt.Errorf("%w: the collection keeps no token codes; the strategy %s needs them", store.ErrInvalid, p.Strategy)
	case what != "":
		return fmt.Errorf("%w: the strategy %s needs %s in the request; bring it, or leave strategy out", store.ErrInvalid, p.Strategy, what)
	}
	return nil
}

func (p Plan) check() error {
	switch {
	case !slices.Contains(strategies, p.Strategy):
		return fmt.Errorf("%w: unknown strategy %q; use one of %v", store.ErrInvalid, p.Strategy, strategies)
	case p.K < 1 || p.K > MaxK:
		return fmt.Errorf("%w: k is %d; use 1 to %d", store.ErrInvalid, p.K, MaxK)
	case p.Fusion != "" && !p.fuses() && p.Strategy != Auto:
		return fmt.Errorf("%w: the strategy %s has nothing to fuse; leave fusion out", store.ErrInvalid, p.Strategy)
	case p.Fusion != "" && !slices.Contains(fusions, p.Fusion):
		return fmt.Errorf("%w: unknown fusion %q; use one of %v", store.ErrInvalid, p.Fusion, fusions)
	}
	return nil
}

// Canonical is the plan's one serialisation: JSON with its fields in the order
// of the type, those that do not apply left out.
func (p Plan) Canonical() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and finite numbers always marshal
	}
	return text
}

// Hash names the plan: the first 16 hexadecimal digits of the SHA-256 of its
// canonical form.
func (p Plan) Hash() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:8])
}
