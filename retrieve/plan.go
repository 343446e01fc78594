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
	Hybrid       = "hybrid"
	HybridLate   = "hybrid-late"
	HybridRerank = "hybrid-rerank"
)

// Fusions that the strategies of both legs may name.
const (
	RRF   = "rrf"
	Score = "score"
)

var (
	strategies = []string{Sparse, Dense, Hybrid, HybridLate, HybridRerank}
	fusions    = []string{RRF, Score}
)

const (
	defaultStrategy = HybridLate
	defaultFusion   = Score

	denseDepth   = 70
	lexicalDepth = 100
	rrfConstant  = 60
	poolDepth    = 30

	denseWeight   = 1
	lexicalWeight = 0.5

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
	Strategy      string  `json:"strategy"`
	K             int     `json:"k"`
	DenseDepth    int     `json:"dense_depth,omitempty"`
	LexicalDepth  int     `json:"lexical_depth,omitempty"`
	Fusion        string  `json:"fusion,omitempty"`
	RRFConstant   int     `json:"rrf_constant,omitempty"`
	PoolDepth     int     `json:"pool_depth,omitempty"` // best fused rows that are scored again
	DenseWeight   float64 `json:"dense_weight,omitempty"`
	LexicalWeight float64 `json:"lexical_weight,omitempty"`
	Codes         string  `json:"codes,omitempty"` // what late interaction works on
	// The lexical leg's weight beside late interaction's, which is 1.
	LateLexicalWeight float64 `json:"late_lexical_weight,omitempty"`
	Model             string  `json:"model,omitempty"`
	Reranker          string  `json:"reranker,omitempty"`
	Analyzer          string  `json:"analyzer,omitempty"`
}

// models are the digests of those that a plan may need; no reranker is "".
type models struct{ embedder, reranker string }

// newPlan makes the plan of a request, filling in defaults; what it does not
// know is store.ErrInvalid.
func newPlan(r Request, m models, analyzer string) (Plan, error) {
	p := Plan{Strategy: cmp.Or(r.Strategy, defaultStrategy), K: cmp.Or(r.K, DefaultK), Fusion: r.Fusion}
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	if p.Strategy != Sparse {
		p.DenseDepth, p.Model = max(denseDepth, p.K), m.embedder
	}
	if p.Strategy != Dense {
		p.LexicalDepth, p.Analyzer = max(lexicalDepth, p.K), analyzer
	}
	if p.fuses() {
		p.Fusion, p.RRFConstant = cmp.Or(r.Fusion, defaultFusion), rrfConstant
	}
	if p.Fusion == Score {
		p.DenseWeight, p.LexicalWeight = denseWeight, lexicalWeight
	}
	if p.Strategy == HybridLate {
		p.Codes, p.LateLexicalWeight = late.Format, lateLexicalWeight
	}
	if p.Strategy == HybridRerank {
		p.Reranker = m.reranker
	}
	if p.Fusion == Score || p.Strategy == HybridLate || p.Strategy == HybridRerank {
		p.PoolDepth = max(poolDepth, p.K)
	}
	return p, nil
}

// fuses reports whether the plan has two legs.
func (p Plan) fuses() bool { return p.Strategy != Sparse && p.Strategy != Dense }

func (p Plan) check() error {
	switch {
	case !slices.Contains(strategies, p.Strategy):
		return fmt.Errorf("%w: unknown strategy %q; use one of %v", store.ErrInvalid, p.Strategy, strategies)
	case p.K < 1 || p.K > MaxK:
		return fmt.Errorf("%w: k is %d; use 1 to %d", store.ErrInvalid, p.K, MaxK)
	case p.Fusion != "" && !p.fuses():
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
