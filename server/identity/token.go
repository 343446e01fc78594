package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"sluice/filter"
	"sluice/filter/lru"
	"sluice/server/config"
)

// tokens verifies JSON Web Tokens and reads a principal from their claims.
type tokens struct {
	parser      *jwt.Parser
	validator   *jwt.Validator
	keys        keyfunc.Keyfunc
	fetched     fetched // of keys
	proofs      *lru.Cache[[sha256.Size]byte, proof]
	claims      config.Claims
	defaultRole Role
}

func newTokens(ctx context.Context, c config.JWT, last fetched, reachable bool) (*tokens, error) {
	keys, remote, err := loadKeys(ctx, c, last, reachable)
	if err != nil {
		return nil, fmt.Errorf("loading the keys of auth.jwt: %w", err)
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods([]string{"HS256", "RS256", "EdDSA"}),
		jwt.WithIssuer(c.Issuer),
		jwt.WithAudience(c.Audience),
		jwt.WithLeeway(c.Leeway),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithJSONNumber(),
		jwt.WithStrictDecoding(),
	}
	return &tokens{
		parser: jwt.NewParser(options...), validator: jwt.NewValidator(options...), keys: keys, fetched: remote,
		proofs: lru.New[[sha256.Size]byte, proof](maxProofs), claims: c.Claims, defaultRole: RoleOf(c.DefaultRole),
	}, nil
}

func (t *tokens) verify(ctx context.Context, token string) (Identity, error) {
	if id, ok := t.remembered(ctx, token); ok {
		return id, nil
	}
	var p proof
	claims, err := jwt.MapClaims{}, error(nil)
	p.token, err = t.parser.ParseWithClaims(token, claims, func(token *jwt.Token) (any, error) {
		p.key, err = t.key(ctx, token)
		return p.key, err
	})
	if err != nil {
		return refuse("token: %w", err)
	}
	if p.id, err = t.identity(claims); err != nil {
		return refuse("claims: %w", err)
	}
	t.remember(token, p)
	return p.id, nil
}

// key finds the token's key. The key decides the algorithm, the token does
// not: a public key never verifies an HMAC.
func (t *tokens) key(ctx context.Context, token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errors.New("the token has critical extensions, and none is supported")
	}
	key, err := t.keys.KeyfuncCtx(ctx)(token)
	if err != nil {
		return nil, err
	}
	set, several := key.(jwt.VerificationKeySet) // the token names no key
	if !several {
		set.Keys = []jwt.VerificationKey{key}
	}
	var fitting jwt.VerificationKeySet
	for _, k := range set.Keys {
		if verifies(k, token.Method.Alg()) {
			fitting.Keys = append(fitting.Keys, k)
		}
	}
	if len(fitting.Keys) == 0 {
		return nil, fmt.Errorf("no key for algorithm %s", token.Method.Alg())
	}
	return fitting, nil
}

func verifies(key any, algorithm string) bool {
	switch key.(type) {
	case []byte:
		return algorithm == "HS256"
	case *rsa.PublicKey:
		return algorithm == "RS256"
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	default:
		return false
	}
}

func (t *tokens) identity(claims jwt.MapClaims) (Identity, error) {
	tenant, err := text(claims, t.claims.Tenant)
	if err != nil {
		return Identity{}, err
	}
	subject, err := text(claims, t.claims.Subject)
	if err != nil {
		return Identity{}, err
	}
	groups, err := list(claims, t.claims.Groups)
	if err != nil {
		return Identity{}, err
	}
	attributes, err := t.attributes(claims)
	if err != nil {
		return Identity{}, err
	}
	role, err := t.role(claims)
	if err != nil {
		return Identity{}, err
	}
	return newIdentity(tenant, subject, groups, attributes, role)
}

func (t *tokens) attributes(claims jwt.MapClaims) (filter.Attributes, error) {
	values := map[string]any{}
	for name, claim := range t.claims.Attributes {
		values[name] = lookup(claims, claim)
	}
	return filter.ParseAttributes(values)
}

func (t *tokens) role(claims jwt.MapClaims) (Role, error) {
	if lookup(claims, t.claims.Roles) == nil {
		return t.defaultRole, nil
	}
	names, err := list(claims, t.claims.Roles)
	return highest(names), err
}

// lookup finds a claim by its name, else by its path ("realm_access.roles").
func lookup(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok {
		return value
	}
	head, rest, ok := strings.Cut(name, ".")
	if inner, isObject := claims[head].(map[string]any); ok && isObject {
		return lookup(inner, rest)
	}
	return nil
}

func text(claims jwt.MapClaims, name string) (string, error) {
	switch v := lookup(claims, name).(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	default:
		return "", fmt.Errorf("claim %s is not a string", name)
	}
}

func list(claims jwt.MapClaims, name string) ([]string, error) {
	switch v := lookup(claims, name).(type) {
	case nil:
		return nil, nil
	case []any:
		all, err := stringList(v)
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", name, err)
		}
		return all, nil
	default:
		return nil, fmt.Errorf("claim %s is not a list of strings", name)
	}
}

func stringList(list []any) ([]string, error) {
	all := make([]string, 0, len(list))
	for _, item := range list {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("a %T in a list of strings", item)
		}
		all = append(all, s)
	}
	return all, nil
}
