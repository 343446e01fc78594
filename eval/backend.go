package eval

import (
	"context"
	"iter"

	"sluice/client"
)

// Backend is the service under test, seen through its public API.
type Backend interface {
	// As returns the API as one principal sees it.
	As(ctx context.Context, p Principal) (Session, error)
	Close() error
}

// Session is the part of client.Client that the gate uses.
type Session interface {
	CreateCollection(ctx context.Context, name string, settings client.CollectionSettings) (client.Collection, error)
	Ingest(ctx context.Context, collection string, documents iter.Seq2[client.Document, error], onResult func(client.WriteResult) error) error
	List(ctx context.Context, collection, after string, limit int) (client.Listing, error)
	Document(ctx context.Context, collection, key string) (client.DocumentInfo, error)
	Search(ctx context.Context, collection string, request client.SearchRequest) (client.SearchResponse, error)
}

// Connector reaches or starts the service for a data set: with its principals
// known, and its policies, if it has any, in force.
type Connector func(ctx context.Context, d *Dataset) (Backend, error)

// writer is the one who creates a tenant's collection and writes its documents.
func writer(tenant string) Principal {
	return Principal{Name: "eval-writer", Tenant: tenant, Roles: []string{"read", "write", "admin"}}
}
