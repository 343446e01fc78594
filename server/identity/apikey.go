package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"sluice/server/config"
)

type apiKey struct {
	hash [sha256.Size]byte
	id   Identity
}

// NewKey makes a random API key of 256 bits and the hash that the
// configuration keeps. A fast hash suffices: nobody guesses such a key.
func NewKey() (key, hash string) {
	var random [32]byte
	rand.Read(random[:]) // never fails
	key = "sluice_" + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(key))
	return key, "sha256:" + hex.EncodeToString(sum[:])
}

func newAPIKey(k config.APIKey) (apiKey, error) {
	id, err := configured(k.Principal)
	if err != nil {
		return apiKey{}, fmt.Errorf("API key %s: %w", k.Name, err)
	}
	key := apiKey{id: id}
	sum, err := hex.DecodeString(strings.TrimPrefix(k.Hash, "sha256:"))
	if err != nil || len(sum) != len(key.hash) {
		return apiKey{}, fmt.Errorf("API key %s: the hash is not sha256: and 64 hexadecimal digits", k.Name)
	}
	copy(key.hash[:], sum)
	return key, nil
}

// apiKey compares with every key, each in constant time.
func (a *Authenticator) apiKey(secret string) (Identity, error) {
	sum := sha256.Sum256([]byte(secret))
	found := -1
	for i := range a.keys {
		if subtle.ConstantTimeCompare(sum[:], a.keys[i].hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return refuse("unknown API key")
	}
	return a.keys[found].id, nil
}
