// Package client is the Go client of the HTTP API, and the home of its wire
// types: the server encodes what this package declares.
//
// A [Client] speaks for one principal, whose token [New] is given:
//
//	c, err := client.New("http://127.0.0.1:8080", client.WithToken(token))
//	answer, err := c.Search(ctx, "handbook", client.SearchRequest{Query: "how long is leave?"})
//
// Every operation of the API's description (GET /openapi.json) has a method. An
// error answer is a [*Problem], whose text says what to do. What was refused with
// 429 or 503 is sent again, a few times, after the time that the daemon asks for;
// streams ([Client.Ingest], [Client.ImportAccess]) are not.
package client

import (
	"encoding/json"
	"time"
)

// CollectionSettings is the body of PUT /v1/collections/{c}.
type CollectionSettings struct {
	Analyzer   string `json:"analyzer,omitempty"`    // "english" (default), …
	TokenCodes *bool  `json:"token_codes,omitempty"` // keep token codes for late interaction; default true
	Chunker    string `json:"chunker,omitempty"`     // such as "structure/1"; default: that of each document's format
	CodeBits   int    `json:"code_bits,omitempty"`   // a dimension of theirs: 1 or 8; default 1, with own vectors 8

	OwnVectors *OwnVectors `json:"own_vectors,omitempty"` // documents bring their vectors; none: the model makes them
}

// OwnVectors are the dimensions of the vectors that documents bring; 0: none of
// that kind.
type OwnVectors struct {
	Dimensions      int `json:"dimensions,omitempty"`       // of one vector a passage
	MultiDimensions int `json:"multi_dimensions,omitempty"` // of each of a passage's token or patch vectors
}

// Collection is what PUT and GET /v1/collections/{c} answer.
type Collection struct {
	Name       string    `json:"name"`
	Analyzer   string    `json:"analyzer"`
	TokenCodes bool      `json:"token_codes"`
	Chunker    string    `json:"chunker,omitempty"`   // "": that of each document's format
	CodeBits   int       `json:"code_bits,omitempty"` // of token codes, if there are any
	Model      string    `json:"model"`               // "" where documents bring their vectors
	Dimensions int       `json:"dimensions"`          // of a passage's vector
	Created    time.Time `json:"created"`

	OwnVectors *OwnVectors `json:"own_vectors,omitempty"`
}

// Document is one document to write: the body of POST …/documents, or one line
// of its NDJSON form. Entries of Readers: "user:…", "group:…", "public". A
// collection with own vectors takes Passages in place of Format and Text.
//
// On a document that is there, a field of the access row that is absent (nil)
// stays as it is, and null takes it away: no readers (a pointer to a nil list)
// leave the decision to the policies, while an empty list admits nobody. On a
// new document absent is null. [Client.SetAccess] takes a bound of validity away.
type Document struct {
	Key        string         `json:"key"`
	Title      string         `json:"title,omitempty"`
	Format     string         `json:"format,omitempty"` // "markdown", "html", "text", "docling", "pdf", "docx", "pptx", "xlsx"
	Text       string         `json:"text,omitempty"`
	Data       []byte         `json:"data,omitempty"` // in place of Text: the bytes of a format that is no text, in base64
	Passages   []Passage      `json:"passages,omitempty"`
	Readers    *[]string      `json:"readers,omitempty"`
	Attributes map[string]any `json:"attributes,omitzero"`
	Regions    []string       `json:"regions,omitzero"`
	ValidFrom  *time.Time     `json:"valid_from,omitempty"`
	ValidUntil *time.Time     `json:"valid_until,omitempty"`
}

// Passage is a piece of a document with the vectors that its writer made, of any
// length but 0: the daemon scales each to length 1.
type Passage struct {
	Text     string   `json:"text,omitempty"`     // none: a picture, say
	Headings []string `json:"headings,omitempty"` // what it stands under
	Vector   Vector   `json:"vector,omitzero"`
	Vectors  Matrix   `json:"vectors,omitzero"` // of its tokens, patches, …
}

// WriteResult says what became of one document. Line is the 1-based NDJSON line.
// Lines with the same key are applied in their order; each has its result.
// Status: "created", "updated", "unchanged", "access_updated" or "failed".
type WriteResult struct {
	Line      int      `json:"line,omitempty"`
	Key       string   `json:"key,omitempty"`
	Status    string   `json:"status"`
	Version   uint32   `json:"version,omitempty"`
	Chunks    int      `json:"chunks,omitempty"`
	Truncated int      `json:"truncated_chunks,omitempty"` // chunks whose end the model did not see
	Error     *Problem `json:"error,omitempty"`
}

// AccessPatch is the body of PATCH …/documents/{key}/access. An absent field
// stays as it is; readers null takes the declaration away, [] admits nobody.
type AccessPatch struct {
	Readers    json.RawMessage `json:"readers,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
	Regions    json.RawMessage `json:"regions,omitempty"`
	ValidFrom  json.RawMessage `json:"valid_from,omitempty"`
	ValidUntil json.RawMessage `json:"valid_until,omitempty"`
}

// DocumentInfo is one document in a listing, or without its text.
type DocumentInfo struct {
	Key        string         `json:"key"`
	Version    uint32         `json:"version"`
	Title      string         `json:"title"`
	Format     string         `json:"format"`
	Chunker    string         `json:"chunker"`
	Chunks     int            `json:"chunks"`
	Updated    time.Time      `json:"updated"`
	Readers    *[]string      `json:"readers,omitempty"` // writers and admins only
	Attributes map[string]any `json:"attributes,omitempty"`
	Regions    []string       `json:"regions,omitempty"`
	ValidFrom  *time.Time     `json:"valid_from,omitempty"`
	ValidUntil *time.Time     `json:"valid_until,omitempty"`
	Text       string         `json:"text,omitempty"` // GET of one document only
}

// Listing is one page of GET …/documents. Next is the cursor of the next page.
type Listing struct {
	Documents []DocumentInfo `json:"documents"`
	Next      string         `json:"next,omitempty"`
}

// Scope narrows or widens applicability. Defaults: the principal's own region,
// the present time.
type Scope struct {
	Region    *string    `json:"region,omitempty"`
	AnyRegion bool       `json:"any_region,omitempty"`
	AsOf      *time.Time `json:"as_of,omitempty"`
	AnyTime   bool       `json:"any_time,omitempty"`
}

// SearchRequest is the body of POST …/search: a query, vectors of it, or both.
type SearchRequest struct {
	Query    string `json:"query,omitempty"`
	Vector   Vector `json:"vector,omitzero"`    // of the query, in place of the model's
	Vectors  Matrix `json:"vectors,omitzero"`   // of its tokens, in place of the model's
	K        int    `json:"k,omitempty"`        // default 10, at most 100
	Strategy string `json:"strategy,omitempty"` // "sparse", "dense", "late", "hybrid", "hybrid-late", "hybrid-rerank", "auto" (by the query: sparse, hybrid or hybrid-late); none: the fullest that the above can feed
	Fusion   string `json:"fusion,omitempty"`   // "rrf", "score", with the hybrid strategies; none: the server's choice
	Scope    *Scope `json:"scope,omitempty"`
	Explain  bool   `json:"explain,omitempty"`

	Ranking *Ranking `json:"ranking,omitempty"` // none: the server's choice
}

// Ranking holds the depths and weights of a search's plan. In a request 0 is the
// server's choice, and what the strategy has no use for is an error; in a
// response 0 is what was not used.
type Ranking struct {
	DenseDepth        int     `json:"dense_depth,omitempty"`         // hits of that leg, at most 1,000; k at least
	LexicalDepth      int     `json:"lexical_depth,omitempty"`       // likewise
	RRFConstant       int     `json:"rrf_constant,omitempty"`        // with the fusion "rrf", in weight/(constant + rank); default 60
	PoolDepth         int     `json:"pool_depth,omitempty"`          // best of both legs that are scored again, at most 1,000; k at least
	DenseWeight       float64 `json:"dense_weight,omitempty"`        // in the fusion, at most 100, as all weights
	LexicalWeight     float64 `json:"lexical_weight,omitempty"`      // likewise
	LateLexicalWeight float64 `json:"late_lexical_weight,omitempty"` // beside late interaction's, which is 1
}

// SearchResponse answers it.
type SearchResponse struct {
	Results    []SearchResult `json:"results"`
	Strategy   string         `json:"strategy"`   // with "auto": which one it chose
	Generation uint32         `json:"generation"` // of the collection, that the whole answer is from
	Plan       string         `json:"plan"`       // hash of the plan
	Counts     Counts         `json:"counts"`
	Degraded   []string       `json:"degraded"`

	Ranking    *Ranking `json:"ranking,omitempty"`    // with explain: what the plan used
	Complexity float64  `json:"complexity,omitempty"` // with explain and "auto": what it chose by, above 0 and below 1
}

// Counts of documents. Only what the principal may read is counted.
type Counts struct {
	Visible    int `json:"visible"`
	OutOfScope int `json:"out_of_scope"` // visible, but not applicable
}

// SearchResult is one passage: the bytes [Start, End) of the document's normalised text.
type SearchResult struct {
	Document string   `json:"document"`
	Version  uint32   `json:"version"`
	Title    string   `json:"title"`
	Start    int      `json:"start"`
	End      int      `json:"end"`
	Headings []string `json:"headings"`
	Text     string   `json:"text"`
	Score    float64  `json:"score"`
	Explain  *Explain `json:"explain,omitempty"`
}

// Explain holds a result's rank (1-based) and score in each leg that found it,
// and in late interaction ("late") or by the cross-encoder ("rerank") where the
// strategy has it.
type Explain struct {
	Legs map[string]LegExplain `json:"legs"`
}

// LegExplain is one leg's word on a result.
type LegExplain struct {
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
}

// Problem is an error body (RFC 9457, application/problem+json).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"` // says what to do

	RetryAfter time.Duration `json:"-"` // from the header; zero if there is none
}

// Error makes a Problem an error.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// Status answers GET /healthz and /readyz.
type Status struct {
	Status string `json:"status"` // "ok"
}
