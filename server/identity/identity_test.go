package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/server/config"
)

const secret = "0123456789abcdef0123456789abcdef"

// issuer holds the private halves of the keys that a test's tokens are signed with.
type issuer struct {
	rsa    *rsa.PrivateKey
	ed     ed25519.PrivateKey
	rsaPEM []byte
	config config.JWT
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	i := &issuer{rsa: private, ed: edPrivate, rsaPEM: pemOf(t, &private.PublicKey)}
	i.config = config.JWT{
		Issuer: "https://id.example.org", Audience: "sluice",
		Keys: []config.Key{
			{ID: "h", Algorithm: "HS256", File: file(t, []byte(secret+"\n"))},
			{ID: "r", Algorithm: "RS256", File: file(t, i.rsaPEM)},
			{ID: "e", Algorithm: "EdDSA", File: file(t, pemOf(t, edPublic))},
		},
		Claims: config.Claims{
			Tenant: "tenant", Subject: "sub", Groups: "groups", Roles: "realm_access.roles",
			Attributes: map[string]string{"region": "region", "level": "level", "projects": "projects", "staff": "staff", "dept": "dept"},
		},
	}
	return i
}

func pemOf(t *testing.T, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(name, content, 0o600))
	return name
}

func claims() jwt.MapClaims {
	return jwt.MapClaims{
		"iss": "https://id.example.org", "aud": "sluice", "exp": time.Now().Add(time.Hour).Unix(),
		"sub": "alice", "tenant": "acme", "groups": []string{"eng", "eu"},
		"realm_access": map[string]any{"roles": []string{"write", "uma_authorization"}},
		"region":       "EU", "level": 3, "projects": []string{"b", "a", "b"}, "staff": true, "dept": nil,
	}
}

func with(change func(jwt.MapClaims)) jwt.MapClaims {
	c := claims()
	change(c)
	return c
}

func sign(t *testing.T, method jwt.SigningMethod, kid string, key any, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

func authenticator(t *testing.T, c config.JWT) *Authenticator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	a, err := New(ctx, config.Auth{JWT: &c}, config.Demo{})
	require.NoError(t, err)
	return a
}

func bearer(a *Authenticator, token string) (Identity, error) {
	return a.Authenticate(context.Background(), Credentials{Authorization: "Bearer " + token})
}

func TestTokenBecomesPrincipal(t *testing.T) {
	i := newIssuer(t)
	a := authenticator(t, i.config)
	tokens := map[string]string{
		"HS256":          sign(t, jwt.SigningMethodHS256, "h", []byte(secret), claims()),
		"RS256":          sign(t, jwt.SigningMethodRS256, "r", i.rsa, claims()),
		"EdDSA":          sign(t, jwt.SigningMethodEdDSA, "e", i.ed, claims()),
		"without a kid":  sign(t, jwt.SigningMethodEdDSA, "", i.ed, claims()),
		"audience, list": sign(t, jwt.SigningMethodEdDSA, "e", i.ed, with(func(c jwt.MapClaims) { c["aud"] = []string{"x", "sluice"} })),
	}
	want := Identity{Role: Write, Principal: filter.Principal{
		Tenant: "acme", Subject: "alice", Groups: []string{"eng", "eu"},
		Attributes: filter.Attributes{"region": "EU", "level": int64(3), "projects": []string{"a", "b"}, "staff": true},
	}}
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			id, err := bearer(a, token)
			require.NoError(t, err)
			require.Equal(t, want, id)
		})
	}
}

func TestTokenAttacks(t *testing.T) {
	i := newIssuer(t)
	a := authenticator(t, i.config)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ed := func(change func(jwt.MapClaims)) string {
		return sign(t, jwt.SigningMethodEdDSA, "e", i.ed, with(change))
	}
	good := sign(t, jwt.SigningMethodEdDSA, "e", i.ed, claims())
	parts := strings.Split(good, ".")
	critical := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims())
	critical.Header["kid"], critical.Header["crit"] = "e", []string{"b64"}
	criticalToken, err := critical.SignedString(i.ed)
	require.NoError(t, err)

	attacks := map[string]string{
		"none":                      sign(t, jwt.SigningMethodNone, "e", jwt.UnsafeAllowNoneSignatureType, claims()),
		"none without kid":          sign(t, jwt.SigningMethodNone, "", jwt.UnsafeAllowNoneSignatureType, claims()),
		"NONE in capitals":          base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"NoNe","kid":"e"}`)) + "." + parts[1] + ".",
		"no signature":              parts[0] + "." + parts[1] + ".",
		"HS256 with the public key": sign(t, jwt.SigningMethodHS256, "r", i.rsaPEM, claims()),
		"the same without kid":      sign(t, jwt.SigningMethodHS256, "", i.rsaPEM, claims()),
		"HS256 under an Ed key id":  sign(t, jwt.SigningMethodHS256, "e", []byte(secret), claims()),
		"HS512":                     sign(t, jwt.SigningMethodHS512, "h", []byte(secret), claims()),
		"PS256":                     sign(t, jwt.SigningMethodPS256, "r", i.rsa, claims()),
		"another's key":             sign(t, jwt.SigningMethodRS256, "r", stranger, claims()),
		"unknown kid":               sign(t, jwt.SigningMethodRS256, "x", i.rsa, claims()),
		"critical extension":        criticalToken,
		"claims swapped":            parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"tenant":"other"}`)) + "." + parts[2],
		"expired":                   ed(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Minute).Unix() }),
		"never expires":             ed(func(c jwt.MapClaims) { delete(c, "exp") }),
		"not yet":                   ed(func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() }),
		"issued in the future":      ed(func(c jwt.MapClaims) { c["iat"] = time.Now().Add(time.Hour).Unix() }),
		"wrong audience":            ed(func(c jwt.MapClaims) { c["aud"] = "another" }),
		"no audience":               ed(func(c jwt.MapClaims) { delete(c, "aud") }),
		"wrong issuer":              ed(func(c jwt.MapClaims) { c["iss"] = "https://evil.example.org" }),
		"no tenant":                 ed(func(c jwt.MapClaims) { delete(c, "tenant") }),
		"empty tenant":              ed(func(c jwt.MapClaims) { c["tenant"] = "" }),
		"tenant is a list":          ed(func(c jwt.MapClaims) { c["tenant"] = []string{"acme"} }),
		"tenant with NUL":           ed(func(c jwt.MapClaims) { c["tenant"] = "acme\x00other" }),
		"no subject":                ed(func(c jwt.MapClaims) { delete(c, "sub") }),
		"group is a number":         ed(func(c jwt.MapClaims) { c["groups"] = []any{"eng", 3} }),
		"groups is a string":        ed(func(c jwt.MapClaims) { c["groups"] = "eng" }),
		"empty group":               ed(func(c jwt.MapClaims) { c["groups"] = []string{""} }),
		"attribute is an object":    ed(func(c jwt.MapClaims) { c["region"] = map[string]string{"a": "b"} }),
		"attribute is a fraction":   ed(func(c jwt.MapClaims) { c["level"] = 1.5 }),
		"four parts":                good + ".x",
		"empty":                     "..",
	}
	for name, token := range attacks {
		t.Run(name, func(t *testing.T) {
			id, err := bearer(a, token)
			require.ErrorIs(t, err, ErrUnauthenticated)
			require.Zero(t, id)
		})
	}
}

func TestRoles(t *testing.T) {
	i := newIssuer(t)
	i.config.DefaultRole = "read"
	a := authenticator(t, i.config)
	cases := map[string]struct {
		roles any
		want  Role
	}{
		"highest": {[]string{"read", "admin"}, Admin},
		"foreign": {[]string{"root"}, None},
		"empty":   {[]string{}, None},
		"absent":  {nil, Read},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			id, err := bearer(a, sign(t, jwt.SigningMethodEdDSA, "e", i.ed, with(func(m jwt.MapClaims) {
				m["realm_access"] = map[string]any{"roles": c.roles}
			})))
			require.NoError(t, err)
			require.Equal(t, c.want, id.Role)
		})
	}
}

// keySet writes the public half of an RSA key as a JSON Web Key Set.
func keySet(t *testing.T, kid string, key *rsa.PublicKey) []byte {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": kid, "alg": "RS256", "use": "sig",
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}})
	require.NoError(t, err)
	return set
}

func TestKeySetFile(t *testing.T) {
	i := newIssuer(t)
	i.config.JWKSFile = file(t, keySet(t, "from-file", &i.rsa.PublicKey))
	i.config.Keys = nil
	a := authenticator(t, i.config)
	_, err := bearer(a, sign(t, jwt.SigningMethodRS256, "from-file", i.rsa, claims()))
	require.NoError(t, err)
	_, err = bearer(a, sign(t, jwt.SigningMethodHS256, "from-file", i.rsaPEM, claims()))
	require.ErrorIs(t, err, ErrUnauthenticated)
}

// A key that appears at the URL later is found when a token names it; other
// unknown names do not make the daemon ask again at once.
func TestKeySetURL(t *testing.T) {
	i := newIssuer(t)
	var asked atomic.Int32
	var served atomic.Value
	served.Store([]byte(`{"keys":[]}`))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write(served.Load().([]byte))
	}))
	defer s.Close()
	i.config.JWKSURL, i.config.Keys = s.URL, nil
	a := authenticator(t, i.config)
	served.Store(keySet(t, "rotated", &i.rsa.PublicKey))

	_, err := bearer(a, sign(t, jwt.SigningMethodRS256, "rotated", i.rsa, claims()))
	require.NoError(t, err)
	require.EqualValues(t, 2, asked.Load())
	for range 3 {
		_, err = bearer(a, sign(t, jwt.SigningMethodRS256, "guess", i.rsa, claims()))
		require.ErrorIs(t, err, ErrUnauthenticated)
	}
	require.EqualValues(t, 2, asked.Load())
}

// While the identity provider is down, what else changes takes effect, and the
// keys last fetched from it stay.
func TestRenewWhileTheKeySetIsDown(t *testing.T) {
	i := newIssuer(t)
	var down atomic.Bool
	var served atomic.Value
	served.Store(keySet(t, "k", &i.rsa.PublicKey))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(served.Load().([]byte))
	}))
	defer s.Close()
	i.config.JWKSURL, i.config.Keys = s.URL, nil
	key, hash := NewKey()
	held := config.APIKey{Name: "k", Hash: hash, Principal: config.Principal{Tenant: "t", Subject: "s", Roles: []string{"read"}}}
	auth := config.Auth{JWT: &i.config, APIKeys: []config.APIKey{held}}
	a, err := New(t.Context(), auth, config.Demo{})
	require.NoError(t, err)
	token := sign(t, jwt.SigningMethodRS256, "k", i.rsa, claims())
	_, err = bearer(a, key)
	require.NoError(t, err)

	down.Store(true)
	auth.APIKeys = nil
	for range 2 { // and from one to the next
		a, err = Renew(t.Context(), auth, config.Demo{}, a)
		require.NoError(t, err)
		_, err = bearer(a, key)
		require.ErrorIs(t, err, ErrUnauthenticated)
		_, err = bearer(a, token)
		require.NoError(t, err)
	}

	down.Store(false)
	served.Store(keySet(t, "k", &newIssuer(t).rsa.PublicKey))
	a, err = Renew(t.Context(), auth, config.Demo{}, a)
	require.NoError(t, err)
	_, err = bearer(a, token)
	require.ErrorIs(t, err, ErrUnauthenticated, "the keys are those of the URL again")

	down.Store(true)
	_, err = Renew(t.Context(), auth, config.Demo{}, nil)
	require.Error(t, err, "of a URL from which there is nothing yet")
	i.config.JWKSURL += "/new"
	_, err = Renew(t.Context(), auth, config.Demo{}, a)
	require.Error(t, err)
}

// Who can read a key set could sign with a secret or a private key in it.
func TestKeySetsHoldPublicKeysOnly(t *testing.T) {
	i := newIssuer(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	set := func(key map[string]string) []byte {
		text, err := json.Marshal(map[string]any{"keys": []any{key}})
		require.NoError(t, err)
		return text
	}
	cases := map[string]struct {
		set   []byte
		token string
	}{
		"secret": {
			set(map[string]string{"kty": "oct", "kid": "k", "alg": "HS256", "k": encode([]byte(secret))}),
			sign(t, jwt.SigningMethodHS256, "k", []byte(secret), claims()),
		},
		"secret, no kid, no alg": {
			set(map[string]string{"kty": "oct", "k": encode([]byte(secret))}),
			sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims()),
		},
		"private key": {
			set(map[string]string{"kty": "OKP", "crv": "Ed25519", "kid": "k", "d": encode(i.ed.Seed()), "x": encode(i.ed.Public().(ed25519.PublicKey))}),
			sign(t, jwt.SigningMethodEdDSA, "k", i.ed, claims()),
		},
		"short modulus": {keySet(t, "k", &weak.PublicKey), sign(t, jwt.SigningMethodRS256, "k", weak, claims())},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(c.set) }))
			defer s.Close()
			remote := i.config
			remote.JWKSURL, remote.Keys = s.URL, nil
			_, err := bearer(authenticator(t, remote), c.token)
			require.ErrorIs(t, err, ErrUnauthenticated)

			local := i.config
			local.JWKSFile, local.Keys = file(t, c.set), nil
			_, err = New(context.Background(), config.Auth{JWT: &local}, config.Demo{})
			require.ErrorContains(t, err, local.JWKSFile)
		})
	}
}

func TestWeakKeysAreRefused(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	i := newIssuer(t)
	cases := map[string]config.Key{
		"short secret":  {ID: "k", Algorithm: "HS256", File: file(t, []byte("short\n"))},
		"short modulus": {ID: "k", Algorithm: "RS256", File: file(t, pemOf(t, &weak.PublicKey))},
		"not a key":     {ID: "k", Algorithm: "EdDSA", File: file(t, []byte("hello"))},
		"wrong kind":    {ID: "k", Algorithm: "EdDSA", File: file(t, i.rsaPEM)},
		"no file":       {ID: "k", Algorithm: "EdDSA", File: "/does/not/exist"},
	}
	for name, key := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(context.Background(), config.Auth{JWT: &config.JWT{Keys: []config.Key{key}}}, config.Demo{})
			require.ErrorContains(t, err, "key k")
		})
	}
}

func principal(subject string, roles ...string) config.Principal {
	return config.Principal{Tenant: "acme", Subject: subject, Roles: roles}
}

func TestAPIKey(t *testing.T) {
	key, hash := NewKey()
	other, otherHash := NewKey()
	require.NotEqual(t, key, other)
	a, err := New(context.Background(), config.Auth{APIKeys: []config.APIKey{
		{Name: "a", Hash: hash, Principal: principal("bot", "write")},
		{Name: "b", Hash: otherHash, Principal: principal("admin", "admin")},
	}}, config.Demo{})
	require.NoError(t, err)

	id, err := bearer(a, key)
	require.NoError(t, err)
	require.Equal(t, "bot", id.Principal.Subject)
	require.Equal(t, Write, id.Role)
	id, err = bearer(a, other)
	require.NoError(t, err)
	require.Equal(t, Admin, id.Role)

	for _, wrong := range []string{"", hash, key + "x", key[:len(key)-1], strings.ToUpper(key), "a.b.c"} {
		_, err = bearer(a, wrong)
		require.ErrorIs(t, err, ErrUnauthenticated, wrong)
	}
	_, err = a.Authenticate(context.Background(), Credentials{Authorization: "Basic " + key})
	require.ErrorIs(t, err, ErrUnauthenticated)
}

func TestDemoPrincipal(t *testing.T) {
	key, hash := NewKey()
	auth := config.Auth{APIKeys: []config.APIKey{{Name: "a", Hash: hash, Principal: principal("bot", "read")}}}
	people := map[string]config.Principal{"alice": principal("alice", "read")}
	a, err := New(context.Background(), auth, config.Demo{Enabled: true, Principals: people})
	require.NoError(t, err)

	id, err := a.Authenticate(context.Background(), Credentials{Demo: "alice"})
	require.NoError(t, err)
	require.True(t, id.Demo)
	require.Equal(t, "alice", id.Principal.Subject)
	for _, c := range []Credentials{{}, {Demo: "eve"}, {Demo: "alice", Authorization: "Bearer " + key}} {
		_, err = a.Authenticate(context.Background(), c)
		require.ErrorIs(t, err, ErrUnauthenticated)
	}

	off, err := New(context.Background(), auth, config.Demo{Principals: people})
	require.NoError(t, err)
	_, err = off.Authenticate(context.Background(), Credentials{Demo: "alice"})
	require.ErrorIs(t, err, ErrUnauthenticated)
	id, err = off.Authenticate(context.Background(), Credentials{Demo: "alice", Authorization: "Bearer " + key})
	require.NoError(t, err)
	require.Equal(t, "bot", id.Principal.Subject)
}

func TestConfiguredAttributes(t *testing.T) {
	p := principal("alice", "read")
	p.Attributes = map[string]any{"region": "EU", "level": 2, "projects": []any{"b", "a"}, "department": nil}
	id, err := configured(p)
	require.NoError(t, err)
	require.Equal(t, filter.Attributes{"region": "EU", "level": int64(2), "projects": []string{"a", "b"}}, id.Principal.Attributes)

	p.Attributes = map[string]any{"ratio": 1.5}
	_, err = configured(p)
	require.ErrorContains(t, err, "ratio")
}

// A key verifies its own algorithm only; the JWT library has a like check of its own.
func TestKeysArePinned(t *testing.T) {
	i := newIssuer(t)
	own := map[string]any{"HS256": []byte(secret), "RS256": &i.rsa.PublicKey, "EdDSA": i.ed.Public()}
	for algorithm, key := range own {
		for _, a := range []string{"HS256", "RS256", "EdDSA", "PS256", "none"} {
			require.Equal(t, a == algorithm, verifies(key, a), "%s with a key for %s", a, algorithm)
		}
	}
	require.False(t, verifies("a string", "HS256"))
}

// Keys of one subject are one principal, or the subject alone does not say which.
func TestASubjectOfSeveralKeys(t *testing.T) {
	key := func(name, subject string, groups ...string) config.APIKey {
		_, hash := NewKey()
		return config.APIKey{Name: name, Hash: hash, Principal: config.Principal{Tenant: "acme", Subject: subject, Groups: groups, Roles: []string{name}}}
	}
	a, err := New(t.Context(), config.Auth{APIKeys: []config.APIKey{
		key("read", "ann", "hr", "it"), key("write", "ann", "it", "hr"), key("read", "bob", "hr"), key("write", "bob"),
	}}, config.Demo{})
	require.NoError(t, err)
	p, known, err := a.Configured("acme", "ann")
	require.NoError(t, err)
	require.True(t, known)
	require.ElementsMatch(t, []string{"hr", "it"}, p.Groups)
	_, _, err = a.Configured("acme", "bob")
	require.ErrorIs(t, err, ErrAmbiguous)
	_, known, err = a.Configured("globex", "bob")
	require.NoError(t, err)
	require.False(t, known)
}
