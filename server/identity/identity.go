// Package identity turns credentials into a principal: JSON Web Tokens, hashed
// API keys and, in a demo, named principals. A tenant comes from nowhere else.
package identity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/filter"
	"sluice/server/config"
)

// ErrUnauthenticated is what every failure to prove an identity wraps. The
// text around it is for the operator's log, never for the outsider.
var ErrUnauthenticated = errors.New("unauthenticated")

// maxName bounds tenants, subjects, groups and attribute values, in bytes.
const (
	maxName   = 1024
	maxGroups = 4096
)

// Role is what an identity may do; it never widens what may be read. The zero
// value may do nothing, and each role includes those before it.
type Role uint8

// The roles.
const (
	None  Role = iota
	Read       // search, list, get, embed
	Write      // ingest, delete, change access
	Admin      // create collections, read metrics
)

// RoleOf returns the role of a name, None if there is no such role.
func RoleOf(name string) Role {
	switch name {
	case "read":
		return Read
	case "write":
		return Write
	case "admin":
		return Admin
	default:
		return None
	}
}

// String is the role's name, "" of None.
func (r Role) String() string {
	return [...]string{None: "", Read: "read", Write: "write", Admin: "admin"}[r]
}

func highest(names []string) Role {
	role := None
	for _, name := range names {
		role = max(role, RoleOf(name))
	}
	return role
}

// Identity is who asks, and what they may do.
type Identity struct {
	Principal filter.Principal
	Role      Role
	Demo      bool // chosen by name, not proven
}

// Credentials are what a request brings.
type Credentials struct {
	Authorization string // the header
	Demo          string // the header X-Sluice-Principal
}

// Authenticator proves identities. It is safe for concurrent use.
type Authenticator struct {
	tokens *tokens // nil without JWT
	keys   []apiKey
	demo   map[string]Identity // nil outside a demo
}

// New prepares the ways that the configuration names. A JWKS URL is watched
// until ctx ends; while it cannot be reached its tokens are refused.
func New(ctx context.Context, auth config.Auth, demo config.Demo) (*Authenticator, error) {
	return prepare(ctx, auth, demo, fetched{}, false)
}

// Renew is New for what is to replace another Authenticator (nil: none). While
// its JWKS URL cannot be reached the keys last fetched from there stay; one that
// is new must be reachable.
func Renew(ctx context.Context, auth config.Auth, demo config.Demo, before *Authenticator) (*Authenticator, error) {
	var last fetched
	if before != nil && before.tokens != nil {
		last = before.tokens.fetched
	}
	return prepare(ctx, auth, demo, last, true)
}

func prepare(ctx context.Context, auth config.Auth, demo config.Demo, last fetched, reachable bool) (*Authenticator, error) {
	a := &Authenticator{}
	if auth.JWT != nil {
		tokens, err := newTokens(ctx, *auth.JWT, last, reachable)
		if err != nil {
			return nil, err
		}
		a.tokens = tokens
	}
	for _, k := range auth.APIKeys {
		key, err := newAPIKey(k)
		if err != nil {
			return nil, err
		}
		a.keys = append(a.keys, key)
	}
	return a, a.enableDemo(demo)
}

func (a *Authenticator) enableDemo(demo config.Demo) error {
	if !demo.Enabled {
		return nil
	}
	a.demo = map[string]Identity{}
	for name, p := range demo.Principals {
		id, err := configured(p)
		if err != nil {
			return fmt.Errorf("demo principal %s: %w", name, err)
		}
		id.Demo = true
		a.demo[name] = id
	}
	return nil
}

// Authenticate proves who sent the credentials. Outside a demo the demo header
// is as good as absent. Every error wraps ErrUnauthenticated.
func (a *Authenticator) Authenticate(ctx context.Context, c Credentials) (Identity, error) {
	if a.demo == nil {
		c.Demo = ""
	}
	switch {
	case c.Authorization != "" && c.Demo != "":
		return refuse("both a token and a demo principal")
	case c.Demo != "":
		return a.demoPrincipal(c.Demo)
	case c.Authorization != "":
		return a.bearer(ctx, c.Authorization)
	default:
		return refuse("no credentials")
	}
}

// ErrAmbiguous: the configuration gives a subject different groups or attributes.
var ErrAmbiguous = errors.New("the configuration knows the subject with different groups or attributes: say which")

// Configured returns the principal of the tenant that the configuration knows
// under the subject: the holder of API keys, or demo principals.
func (a *Authenticator) Configured(tenant, subject string) (p filter.Principal, known bool, err error) {
	all := slices.Collect(maps.Values(a.demo))
	for _, k := range a.keys {
		all = append(all, k.id)
	}
	for _, id := range all {
		switch q := id.Principal; {
		case q.Tenant != tenant || q.Subject != subject:
		case !known:
			p, known = q, true
		case q.Digest() != p.Digest():
			return filter.Principal{}, false, ErrAmbiguous
		}
	}
	return p, known, nil
}

// Demo returns the identities that a visitor can choose, by name; nil outside a demo.
func (a *Authenticator) Demo() map[string]Identity { return a.demo }

// PrincipalOf checks what somebody says of a principal, as a configuration is checked.
func PrincipalOf(tenant, subject string, groups []string, attributes map[string]any) (filter.Principal, error) {
	parsed, err := filter.ParseAttributes(attributes)
	if err != nil {
		return filter.Principal{}, err
	}
	id, err := newIdentity(tenant, subject, groups, parsed, None)
	return id.Principal, err
}

func (a *Authenticator) demoPrincipal(name string) (Identity, error) {
	id, ok := a.demo[name]
	if !ok {
		return refuse("unknown demo principal")
	}
	return id, nil
}

// bearer tells tokens from keys by their shape: a JWT in compact form has two
// dots, a key has none.
func (a *Authenticator) bearer(ctx context.Context, header string) (Identity, error) {
	scheme, secret, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return refuse("not a bearer token")
	}
	if !strings.Contains(secret, ".") {
		return a.apiKey(secret)
	}
	if a.tokens == nil {
		return refuse("tokens are not configured")
	}
	return a.tokens.verify(ctx, secret)
}

func refuse(format string, args ...any) (Identity, error) {
	return Identity{}, fmt.Errorf("%w: %w", ErrUnauthenticated, fmt.Errorf(format, args...))
}

func configured(p config.Principal) (Identity, error) {
	attributes, err := filter.ParseAttributes(p.Attributes)
	if err != nil {
		return Identity{}, err
	}
	return newIdentity(p.Tenant, p.Subject, p.Groups, attributes, highest(p.Roles))
}

func newIdentity(tenant, subject string, groups []string, attributes filter.Attributes, role Role) (Identity, error) {
	if len(groups) > maxGroups {
		return Identity{}, fmt.Errorf("%d groups are more than %d", len(groups), maxGroups)
	}
	if err := checkName("tenant", tenant); err != nil {
		return Identity{}, err
	}
	if err := checkName("subject", subject); err != nil {
		return Identity{}, err
	}
	for _, g := range groups {
		if err := checkName("group", g); err != nil {
			return Identity{}, err
		}
	}
	p := filter.Principal{Tenant: tenant, Subject: subject, Groups: groups, Attributes: attributes}
	return Identity{Principal: p, Role: role}, nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s is missing", what)
	case len(name) > maxName:
		return fmt.Errorf("the %s is longer than %d bytes", what, maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the %s is not plain text", what)
	default:
		return nil
	}
}
