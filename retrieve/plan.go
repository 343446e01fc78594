package retrieve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"sluice/store"
)

// Strategies a request may name.
const (
	Sparse = "sparse"
	Dense  = "dense"
	Hybrid = "hybrid"
)

// Strategies lists them; the default is Hybrid.
var strategies = []string{Sparse, Dense, Hybrid}

const (
	denseDepth   = 70
	lexicalDepth = 100
	rrfConstant  = 60
	maxK         = 100
	defaultK     = 10
)

// Plan is all that decides how a query is answered, its text and principal
// aside. Equal hashes mean comparable results.
type Plan struct {
	Strategy     string `json:"strategy"`
	K            int    `json:"k"`
	DenseDepth   int    `json:"dense_depth,omitempty"`
	LexicalDepth int    `json:"lexical_depth,omitempty"`
	Fusion       string `json:"fusion,omitempty"`
	RRFConstant  int    `json:"rrf_constant,omitempty"`
	Model        string `json:"model,omitempty"`
	Analyzer     string `json:"analyzer,omitempty"`
}

// newPlan makes the plan of a strategy; an unknown one is store.ErrInvalid.
func newPlan(strategy string, k int, model, analyzer string) (Plan, error) {
	if strategy == "" {
		strategy = Hybrid
	}
	if !slices.Contains(strategies, strategy) {
		return Plan{}, fmt.Errorf("%w: unknown strategy %q; use one of %v", store.ErrInvalid, strategy, strategies)
	}
	if k == 0 {
		k = defaultK
	}
	if k < 1 || k > maxK {
		return Plan{}, fmt.Errorf("%w: k is %d; use 1 to %d", store.ErrInvalid, k, maxK)
	}
	p := Plan{Strategy: strategy, K: k}
	if strategy != Sparse {
		p.DenseDepth, p.Model = max(denseDepth, k), model
	}
	if strategy != Dense {
		p.LexicalDepth, p.Analyzer = max(lexicalDepth, k), analyzer
	}
	if strategy == Hybrid {
		p.Fusion, p.RRFConstant = "rrf", rrfConstant
	}
	return p, nil
}

// Canonical is the plan's one serialisation: JSON with its fields in the order
// of the type, those that do not apply left out.
func (p Plan) Canonical() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and integers always marshal
	}
	return text
}

// Hash names the plan: the first 16 hexadecimal digits of the SHA-256 of its
// canonical form.
func (p Plan) Hash() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:8])
}
