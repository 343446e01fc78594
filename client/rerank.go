package client

import (
	"encoding/json"
	"errors"
)

// JinaRerankRequest is the body of POST /v1/rerank, as Jina defines it.
type JinaRerankRequest struct {
	Model           string         `json:"model,omitempty"` // none: the daemon's
	Query           string         `json:"query"`           // 64 KiB at most
	Documents       []JinaDocument `json:"documents"`       // 1 to 2,048
	TopN            *int           `json:"top_n,omitempty"`
	ReturnDocuments *bool          `json:"return_documents,omitempty"` // default true
}

// JinaDocument is a text; a lone string reads as one.
type JinaDocument struct {
	Text string `json:"text"`
}

// UnmarshalJSON reads a string or an object with a text.
func (d *JinaDocument) UnmarshalJSON(data []byte) error {
	var object struct {
		Text *string `json:"text"`
	}
	if object.Text = new(string); json.Unmarshal(data, object.Text) == nil && string(data) != "null" {
		d.Text = *object.Text
		return nil
	}
	object.Text = nil
	if json.Unmarshal(data, &object) != nil || object.Text == nil {
		return errors.New("expected a string, or an object with a text")
	}
	d.Text = *object.Text
	return nil
}

// JinaRerankResponse answers it.
type JinaRerankResponse struct {
	Model   string       `json:"model"`
	Object  string       `json:"object"` // "list"
	Usage   Usage        `json:"usage"`
	Results []JinaResult `json:"results"` // best first
}

// JinaResult is one document's score, from 0 to 1. Truncated, which Jina does
// not have, says that the model did not see the document's end.
type JinaResult struct {
	Index          int           `json:"index"`
	RelevanceScore float32       `json:"relevance_score"`
	Document       *JinaDocument `json:"document,omitempty"`
	Truncated      bool          `json:"truncated,omitempty"`
}

// JinaError is the error body of POST /v1/rerank.
type JinaError struct {
	Detail string `json:"detail"`
}

// CohereRerankRequest is the body of POST /v2/rerank, as Cohere defines it.
type CohereRerankRequest struct {
	Model           string   `json:"model"`
	Query           string   `json:"query"`
	Documents       []string `json:"documents"` // 1 to 2,048
	TopN            *int     `json:"top_n,omitempty"`
	MaxTokensPerDoc *int     `json:"max_tokens_per_doc,omitempty"` // default 4,096; the model's own limit holds anyway
	Priority        int      `json:"priority,omitempty"`           // above 0: others go first
}

// CohereRerankResponse answers it.
type CohereRerankResponse struct {
	ID      string         `json:"id"`
	Results []CohereResult `json:"results"` // best first
	Meta    CohereMeta     `json:"meta"`
}

// CohereResult is one document's score, from 0 to 1.
type CohereResult struct {
	Index          int     `json:"index"`
	RelevanceScore float32 `json:"relevance_score"`
}

// CohereMeta says what was done. A warning names the documents that were cut.
type CohereMeta struct {
	APIVersion CohereVersion `json:"api_version"`
	Warnings   []string      `json:"warnings,omitempty"`
}

// CohereVersion is that of the API.
type CohereVersion struct {
	Version string `json:"version"` // "2"
}

// CohereError is the error body of POST /v2/rerank.
type CohereError struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}
