// Package audit keeps an append-only log of who did what, when and at which
// epoch. docs/formats/audit.md states the format.
package audit

import (
	"encoding/hex"
	"net/http"
	"time"

	"sluice/filter"
)

// Actions.
const (
	CreateCollection = "collection.create"
	WriteDocument    = "document.write"
	DeleteDocument   = "document.delete"
	ChangeAccess     = "access.change"
	PreviewAccess    = "access.preview"
	ExplainAccess    = "access.explain"
	Reindex          = "collection.reindex" // Document: which change
	SetQueries       = "queries.set"
	LoadPolicies     = "policies.load"
	TakeSnapshot     = "snapshot.take"
	Impersonate      = "principal.impersonate" // of As
	Search           = "search"
)

// Stages. An administrative action has a record before it begins and one after
// it has ended; a search has one.
const (
	Begin = "begin"
	End   = "end"
)

// Record is one line of the log. It never holds the text of a query or of a
// document.
type Record struct {
	Sequence    uint64    `json:"seq"` // set by the log
	Time        time.Time `json:"time"`
	Stage       string    `json:"stage"`
	Action      string    `json:"action"`
	Request     string    `json:"request,omitempty"`
	Tenant      string    `json:"tenant,omitempty"`
	Subject     string    `json:"subject,omitempty"`
	Principal   string    `json:"principal,omitempty"` // hexadecimal digest
	As          string    `json:"as,omitempty"`        // subject that the above impersonates
	AsPrincipal string    `json:"as_principal,omitempty"`
	Collection  string    `json:"collection,omitempty"`
	Document    string    `json:"document,omitempty"`
	Policies    string    `json:"policies,omitempty"` // hexadecimal digest
	Status      int       `json:"status,omitempty"`   // HTTP, of the outcome
	Epoch       uint64    `json:"epoch,omitempty"`
	Plan        string    `json:"plan,omitempty"`
	Counts      *Counts   `json:"counts,omitempty"`
	Lost        uint64    `json:"lost,omitempty"` // records before this one that could not be written
}

// refusal is the record of what was refused although it has a record, which
// came too late or may not last.
func (r Record) refusal() Record {
	r.Stage, r.Status = End, http.StatusServiceUnavailable
	r.Epoch, r.Plan, r.Counts, r.Lost = 0, "", nil, 0
	return r
}

// Counts are those of a search.
type Counts struct {
	Visible    int `json:"visible"`
	OutOfScope int `json:"out_of_scope"`
	Results    int `json:"results"`
}

// Digest names a principal: equal ones have the same authority.
func Digest(p filter.Principal) string {
	sum := p.Digest()
	return hex.EncodeToString(sum[:])
}
