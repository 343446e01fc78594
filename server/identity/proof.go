package identity

import (
	"context"
	"crypto/sha256"
	"reflect"

	"github.com/golang-jwt/jwt/v5"
)

const (
	maxProofs  = 8 << 20 // bytes of the tokens that are remembered, about
	proofShare = 8       // what a remembered token takes, for each of its bytes
)

// proof is a token whose signature fits a key. That does not change; whether
// the key is still trusted and the time is right does, and is looked at again.
type proof struct {
	token *jwt.Token
	key   any
	id    Identity
}

// remembered returns the identity of a token that was verified before, if it
// would be verified now.
func (t *tokens) remembered(ctx context.Context, token string) (Identity, bool) {
	p, ok := t.proofs.Get(sha256.Sum256([]byte(token)))
	if !ok {
		return Identity{}, false
	}
	key, err := t.key(ctx, p.token)
	if err != nil || !reflect.DeepEqual(key, p.key) || t.validator.Validate(p.token.Claims) != nil {
		return Identity{}, false
	}
	return p.id, true
}

func (t *tokens) remember(token string, p proof) {
	t.proofs.Put(sha256.Sum256([]byte(token)), p, proofShare*len(token))
}
