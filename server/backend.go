package server

import (
	"context"

	"sluice/filter"
	"sluice/gpu"
	"sluice/ingest"
	"sluice/model/tokenizer"
	"sluice/retrieve"
	answers "sluice/retrieve/answer"
	"sluice/store"
)

// Backend is what the server serves. Every method is safe for concurrent use
// and honours its context. Errors wrap:
//
//	store.ErrNotFound                        404; what is missing and what is forbidden alike
//	store.ErrInvalid                         400; its text is shown to the caller and says what to do
//	store.ErrSettingsDiffer,
//	store.ErrTooManyRows, ingest.ErrBusy     409
//	gpu.TooLongError                         413
//	tokenizer.ErrUnknownID,
//	model.ErrUnknownPrompt                   400
//	gpu.ErrOverloaded                        429, with the drain time of a gpu.OverloadedError
//	gpu.ErrDevice, gpu.ErrClosed, chunk.ErrPlanner,
//	store.ErrUnavailable, retrieve.ErrBehind,
//	retrieve.ErrLagging, retrieve.ErrStopped 503
//	context.DeadlineExceeded                 504
//	syscall.ENOSPC                           507
//
// Anything else is a fault: 500, its text in the log only.
type Backend interface {
	// CreateCollection creates it or finds it there with the same settings (created false).
	CreateCollection(ctx context.Context, p filter.Principal, name string, settings store.Settings) (c store.Collection, created bool, err error)
	Collection(ctx context.Context, p filter.Principal, name string) (store.Collection, error)
	// Collections are those of the tenant, by name.
	Collections(ctx context.Context, tenant string) ([]store.Collection, error)
	// Policies are those in force.
	Policies(ctx context.Context) (store.PolicySource, error)

	// Write parses, chunks, embeds and commits; a search that starts after it
	// returns finds the document.
	Write(ctx context.Context, p filter.Principal, collection string, d ingest.Document) (ingest.Outcome, error)
	// Delete returns the epoch of the removal.
	Delete(ctx context.Context, p filter.Principal, collection, key string) (epoch uint64, err error)
	// SetAccess gives change the present row and stores what it returns. When
	// it returns, no search that starts later sees the document by the old row.
	SetAccess(ctx context.Context, p filter.Principal, collection, key string, change func(filter.Access) (filter.Access, error)) (store.Receipt, error)

	// PreviewAccess says who would gain and who would lose what under the
	// supposition; nothing changes. Nobody's right to read is asked for.
	PreviewAccess(ctx context.Context, tenant, collection string, s retrieve.Supposition, principals []retrieve.Previewed) (retrieve.Preview, error)
	// ExplainAccess says what decides whether p may read the document.
	ExplainAccess(ctx context.Context, p filter.Principal, collection, key string) (store.Record, filter.Explanation, error)

	// Document returns a document that p may read, without vectors.
	Document(ctx context.Context, p filter.Principal, collection, key string) (store.Content, error)
	// List returns up to limit documents that p may read, after the cursor
	// ("" for the first), and the cursor of the next page ("" for none).
	List(ctx context.Context, p filter.Principal, collection, cursor string, limit int) (page []store.Record, next string, err error)
	Search(ctx context.Context, r retrieve.Request) (retrieve.Response, error)
	// Answer makes a cited answer, or shows the evidence alone.
	Answer(ctx context.Context, r answers.Request) (answers.Response, error)

	Reindexer() Reindexer

	Embed(ctx context.Context, r gpu.Request) ([]gpu.Embedding, error)
	Info() gpu.Info
	Tokenizer() *tokenizer.Tokenizer // of the embedding model
	Reranker() gpu.Reranker          // nil: there is none
	Classifier() gpu.Classifier      // nil: there is none
	// Epoch is the one that searches have reached.
	Epoch() uint64
	// Ready reports why requests could not be served now.
	Ready(ctx context.Context) error
}
