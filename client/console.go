package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Identity answers GET /v1/identity: who the caller is.
type Identity struct {
	Tenant     string         `json:"tenant"`
	Subject    string         `json:"subject"`
	Groups     []string       `json:"groups"`
	Attributes map[string]any `json:"attributes"`
	Role       string         `json:"role"` // read, write or admin
}

// Collections answers GET /v1/collections: those of the caller's tenant, by name.
type Collections struct {
	Collections []Collection `json:"collections"`
}

// Demo answers GET /v1/demo: whom a visitor of a demo can be, by name.
type Demo struct {
	Principals []DemoPrincipal `json:"principals"`
}

// DemoPrincipal is one of them. Its name is what [WithDemoPrincipal] takes.
type DemoPrincipal struct {
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
	Role   string `json:"role"`
}

// impersonateHeader names the principal that an administrator impersonates.
const impersonateHeader = "X-Sluice-Impersonate"

// WithImpersonation has an administrator search, list and read as another principal of
// the tenant would. The audit log keeps both. Any other request is refused.
func WithImpersonation(p Principal) Option {
	text, err := json.Marshal(p)
	if err != nil {
		text = nil // an empty header, which is refused
	}
	return func(c *Client) { c.header.Set(impersonateHeader, string(text)) }
}

// Identity returns who the caller is.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	var answer Identity
	err := c.call(ctx, http.MethodGet, path("v1", "identity"), nil, &answer)
	return answer, err
}

// Collections describes the collections of the caller's tenant.
func (c *Client) Collections(ctx context.Context) (Collections, error) {
	var answer Collections
	err := c.call(ctx, http.MethodGet, path("v1", "collections"), nil, &answer)
	return answer, err
}

// Policies returns the policies in force.
func (c *Client) Policies(ctx context.Context) (PolicyFiles, error) {
	var answer PolicyFiles
	err := c.call(ctx, http.MethodGet, path("v1", "policies"), nil, &answer)
	return answer, err
}

// Demo returns whom a visitor of a demo can be; elsewhere it is not found.
func (c *Client) Demo(ctx context.Context) (Demo, error) {
	var answer Demo
	err := c.call(ctx, http.MethodGet, path("v1", "demo"), nil, &answer)
	return answer, err
}
