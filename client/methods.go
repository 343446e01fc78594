package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// CreateCollection creates a collection, or finds it there with the same settings.
func (c *Client) CreateCollection(ctx context.Context, name string, s CollectionSettings) (Collection, error) {
	var answer Collection
	err := c.call(ctx, http.MethodPut, collectionPath(name), s, &answer)
	return answer, err
}

// Collection describes a collection.
func (c *Client) Collection(ctx context.Context, name string) (Collection, error) {
	var answer Collection
	err := c.call(ctx, http.MethodGet, collectionPath(name), nil, &answer)
	return answer, err
}

// Write writes one document.
func (c *Client) Write(ctx context.Context, collection string, d Document) (WriteResult, error) {
	var answer WriteResult
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "documents"), d, &answer)
	return answer, err
}

// Document reads one document with its text.
func (c *Client) Document(ctx context.Context, collection, key string) (DocumentInfo, error) {
	var answer DocumentInfo
	err := c.call(ctx, http.MethodGet, collectionPath(collection, "documents", key), nil, &answer)
	return answer, err
}

// Delete deletes a document.
func (c *Client) Delete(ctx context.Context, collection, key string) error {
	return c.call(ctx, http.MethodDelete, collectionPath(collection, "documents", key), nil, nil)
}

// SetAccess changes who may read a document, and where and when it applies.
func (c *Client) SetAccess(ctx context.Context, collection, key string, p AccessPatch) (WriteResult, error) {
	var answer WriteResult
	err := c.call(ctx, http.MethodPatch, collectionPath(collection, "documents", key, "access"), p, &answer)
	return answer, err
}

// List returns a page of the documents that the principal may read: up to
// limit, after the cursor ("" for the first page).
func (c *Client) List(ctx context.Context, collection, after string, limit int) (Listing, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if after != "" {
		query.Set("after", after)
	}
	var answer Listing
	err := c.call(ctx, http.MethodGet, collectionPath(collection, "documents")+"?"+query.Encode(), nil, &answer)
	return answer, err
}

// Documents yields all documents that the principal may read, page after page.
// An error ends it.
func (c *Client) Documents(ctx context.Context, collection string) iter.Seq2[DocumentInfo, error] {
	return func(yield func(DocumentInfo, error) bool) {
		for after, more := "", true; more; {
			page, err := c.List(ctx, collection, after, defaultLimit)
			if err != nil {
				yield(DocumentInfo{}, err)
				return
			}
			for _, d := range page.Documents {
				if !yield(d, nil) {
					return
				}
			}
			after, more = page.Next, page.Next != ""
		}
	}
}

// Search searches what the principal may read.
func (c *Client) Search(ctx context.Context, collection string, r SearchRequest) (SearchResponse, error) {
	var answer SearchResponse
	err := c.call(ctx, http.MethodPost, collectionPath(collection, "search"), r, &answer)
	return answer, err
}

// Embed embeds texts, on OpenAI's wire.
func (c *Client) Embed(ctx context.Context, r EmbeddingRequest) (EmbeddingResponse, error) {
	var answer EmbeddingResponse
	err := c.call(ctx, http.MethodPost, path("v1", "embeddings"), r, &answer)
	return answer, err
}

// Health asks whether the process answers.
func (c *Client) Health(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, path("healthz"), nil, nil)
}

// Ready asks, once, whether requests would be served now.
func (c *Client) Ready(ctx context.Context) error {
	return c.try(ctx, http.MethodGet, path("readyz"), nil, nil)
}

// Metrics returns the metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	var answer []byte
	err := c.call(ctx, http.MethodGet, path("metrics"), nil, &answer)
	return answer, err
}

// OpenAPI returns the API's description.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) {
	var answer []byte
	err := c.call(ctx, http.MethodGet, path("openapi.json"), nil, &answer)
	return answer, err
}
