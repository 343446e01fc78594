// Package retrieve is a query's way: resolve, plan, legs, fusion, recheck, assembly.
package retrieve

import "sluice/filter"

// Request is one search of one principal.
type Request struct {
	Principal  filter.Principal
	Collection string // in the principal's tenant
	Generation uint32 // 0: the serving one
	Query      string
	Vector     []float32 // of the query, in place of the model's; nil: none
	Vectors    []float32 // of its tokens, row by row; nil: none
	Columns    int       // of Vectors
	K          int
	Strategy   string  // "": the fullest that the above can feed
	Fusion     string  // "": Score, where there is something to fuse
	Ranking    Ranking // the plan's own depths and weights, where it has none
	Scope      filter.Scope
	Explain    bool
}

// Response answers it.
type Response struct {
	Results    []Result
	Strategy   string  // of the plan: with Auto, what was chosen
	Complexity float64 // of the query, with Auto; else 0
	PlanHash   string
	Ranking    Ranking // of the plan
	Generation uint32  // that the whole answer is from
	Analyzer   string  // of the collection's texts
	Visible    int     // documents the principal may read
	OutOfScope int     // of those, not applicable
	Epoch      uint64  // that the answer reflects at least; for the audit, not for who asks
	Degraded   []string
}

// Result is one passage: bytes [Start, End) of the document's normalised text.
type Result struct {
	Key      string
	Version  uint32
	Title    string
	Start    int
	End      int
	Headings []string
	Text     string
	Score    float64
	Legs     map[string]LegRank
}

// LegRank is a result's 1-based rank and score in one leg, in late interaction
// ("late"), or of the cross-encoder ("rerank").
type LegRank struct {
	Rank  int
	Score float64
}
