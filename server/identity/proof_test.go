package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"sluice/server/config"
)

// A token is verified once, and trusted as long as it would be verified.
func TestARememberedTokenIsLookedAtAgain(t *testing.T) {
	i := newIssuer(t)
	a := authenticator(t, i.config)
	ctx, token := t.Context(), sign(t, jwt.SigningMethodEdDSA, "e", i.ed, claims())
	_, known := a.tokens.remembered(ctx, token)
	require.False(t, known)
	first, err := bearer(a, token)
	require.NoError(t, err)
	again, known := a.tokens.remembered(ctx, token)
	require.True(t, known)
	require.Equal(t, first, again)

	_, known = a.tokens.remembered(ctx, token[:len(token)-4]+"AAAA")
	require.False(t, known, "another signature")

	valid := a.tokens.validator
	a.tokens.validator = jwt.NewValidator(jwt.WithTimeFunc(func() time.Time { return time.Now().Add(2 * time.Hour) }))
	_, known = a.tokens.remembered(ctx, token)
	require.False(t, known, "it has expired")
	a.tokens.validator = valid

	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	i.config.Keys = []config.Key{{ID: "e", Algorithm: "EdDSA", File: file(t, pemOf(t, public))}}
	a.tokens.keys, _, err = loadKeys(ctx, i.config, fetched{}, false)
	require.NoError(t, err)
	_, err = bearer(a, token)
	require.ErrorIs(t, err, ErrUnauthenticated, "its key has been replaced")
	i.config.Keys = nil
	a.tokens.keys, _, err = loadKeys(ctx, i.config, fetched{}, false)
	require.NoError(t, err)
	_, err = bearer(a, token)
	require.ErrorIs(t, err, ErrUnauthenticated, "its key has been removed")
}

func TestWhatIsRefusedIsNotRemembered(t *testing.T) {
	i := newIssuer(t)
	a := authenticator(t, i.config)
	token := sign(t, jwt.SigningMethodEdDSA, "e", i.ed, with(func(c jwt.MapClaims) { delete(c, "tenant") }))
	_, err := bearer(a, token)
	require.ErrorIs(t, err, ErrUnauthenticated)
	_, known := a.tokens.remembered(t.Context(), token)
	require.False(t, known)
}
