package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ReindexRequest is the body of POST …/reindex and …/reindex/estimate.
type ReindexRequest struct {
	Chunker string   `json:"chunker"`
	Bound   *float64 `json:"bound,omitempty"` // by how much the relevance of the query set may fall; default 0.02
}

// ReindexEstimate is what a reindex will take.
type ReindexEstimate struct {
	Chunker   string  `json:"chunker"`
	Documents int     `json:"documents"`
	Chunks    int     `json:"chunks"`
	New       int     `json:"new"`     // chunks to embed
	Reused    int     `json:"reused"`  // chunks whose embedding is there
	Tokens    int     `json:"tokens"`  // of the new
	Seconds   float64 `json:"seconds"` // as fast as a sample was
	Bytes     int64   `json:"bytes"`   // on disk until the old generation is dropped
}

// Generations answers what asks about or changes the generations of a collection.
type Generations struct {
	Generations []Generation     `json:"generations"` // the serving one first
	Progress    *ReindexProgress `json:"progress,omitempty"`
}

// Generation is one complete build of a collection.
type Generation struct {
	ID      uint32      `json:"id"`
	Role    string      `json:"role"`              // serving, building or previous
	Chunker string      `json:"chunker,omitempty"` // none: that of each document's format
	Created time.Time   `json:"created"`
	Job     *ReindexJob `json:"job,omitempty"` // that made it
}

// ReindexJob is the job that makes a generation, or made it.
type ReindexJob struct {
	State    string          `json:"state"` // running, paused, failed, refused or switched
	Reason   string          `json:"reason,omitempty"`
	Started  time.Time       `json:"started"`
	Ended    *time.Time      `json:"ended,omitempty"`
	Estimate ReindexEstimate `json:"estimate"`
	Bound    float64         `json:"bound"`
	Embedded int             `json:"embedded"` // chunks, by the attempts that came to an end
	Reused   int             `json:"reused"`
	Gates    []ReindexGate   `json:"gates"`
}

// ReindexGate is a check that a generation must pass before it serves.
type ReindexGate struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail"`
}

// ReindexProgress is how far a running job is.
type ReindexProgress struct {
	Documents int     `json:"documents"` // built
	Of        int     `json:"of"`
	Embedded  int     `json:"embedded"` // chunks
	Reused    int     `json:"reused"`
	Rate      float64 `json:"rate"`         // documents a second
	Left      float64 `json:"seconds_left"` // 0: not known yet
}

// QuerySet is a collection's own: what principals should find.
type QuerySet struct {
	Queries []JudgedQuery `json:"queries"`
}

// JudgedQuery is a query with the documents that answer it.
type JudgedQuery struct {
	Query     string    `json:"query"`
	Relevant  []string  `json:"relevant"`
	Principal Principal `json:"principal"`
}

// EstimateReindex says what a reindex would take. Nothing is changed.
func (c *Client) EstimateReindex(ctx context.Context, collection string, r ReindexRequest) (ReindexEstimate, error) {
	var answer ReindexEstimate
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "reindex", "estimate"), r, &answer)
	return answer, err
}

// Reindex starts a job.
func (c *Client) Reindex(ctx context.Context, collection string, r ReindexRequest) (Generations, error) {
	var answer Generations
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "reindex"), r, &answer)
	return answer, err
}

// Generations returns the collection's generations and the job under way.
func (c *Client) Generations(ctx context.Context, collection string) (Generations, error) {
	var answer Generations
	err := c.call(ctx, http.MethodGet, collectionPath(collection, "reindex"), nil, &answer)
	return answer, err
}

// ChangeReindex does what action says: pause, resume, cancel, rollback or drop.
// A bound is for resume alone.
func (c *Client) ChangeReindex(ctx context.Context, collection, action string, bound *float64) (Generations, error) {
	var answer Generations
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "reindex", action), ReindexChange{bound}, &answer)
	return answer, err
}

// ReindexChange is the body of POST …/reindex/{action}.
type ReindexChange struct {
	Bound *float64 `json:"bound,omitempty"`
}

// WatchReindex hands each state of a running job to onChange, until none runs.
func (c *Client) WatchReindex(ctx context.Context, collection string, onChange func(Generations) error) error {
	request, err := c.request(ctx, http.MethodGet, collectionPath(collection, "reindex", "events"), http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return problemOf(response)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxProblem*16)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var g Generations
		if err := json.Unmarshal([]byte(data), &g); err != nil {
			return fmt.Errorf("reading an event: %w", err)
		}
		if err := onChange(g); err != nil {
			return err
		}
	}
	return lines.Err()
}

// SetQueries replaces the collection's query set.
func (c *Client) SetQueries(ctx context.Context, collection string, s QuerySet) error {
	return c.call(ctx, http.MethodPut, collectionPath(collection, "queries"), s, nil)
}

// Queries returns the collection's query set.
func (c *Client) Queries(ctx context.Context, collection string) (QuerySet, error) {
	var answer QuerySet
	err := c.call(ctx, http.MethodGet, collectionPath(collection, "queries"), nil, &answer)
	return answer, err
}

// CacheSize is how much an embedding cache holds, or how much was removed from it.
type CacheSize struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// CacheSize returns the size of the daemon's embedding cache. The Client must be
// one of the admin listener.
func (c *Client) CacheSize(ctx context.Context) (CacheSize, error) {
	var answer CacheSize
	err := c.call(ctx, http.MethodGet, path("cache"), nil, &answer)
	return answer, err
}

// PruneCache removes embeddings that were kept longer ago than an age. The
// Client must be one of the admin listener.
func (c *Client) PruneCache(ctx context.Context, age time.Duration) (CacheSize, error) {
	var answer CacheSize
	err := c.call(ctx, http.MethodDelete, path("cache")+"?age="+age.String(), nil, &answer)
	return answer, err
}
