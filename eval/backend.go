package eval

import (
	"context"

	"sluice/client"
)

// Backend is the service under test, seen through its public API.
type Backend interface {
	// As returns the API as one principal sees it.
	As(ctx context.Context, p Principal) (Session, error)
	Close() error
}

// Session is what the gate calls. An error is a failure of the call; a document
// that could not be written is a WriteResult, not an error.
type Session interface {
	PutCollection(ctx context.Context, name string) (client.Collection, error)
	Write(ctx context.Context, collection string, documents []client.Document) ([]client.WriteResult, error)
	List(ctx context.Context, collection, cursor string) (client.Listing, error)
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
