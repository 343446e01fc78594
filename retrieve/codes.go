package retrieve

import (
	"crypto/sha256"

	"sluice/filter/lru"
)

const (
	codesBudget   = 64 << 20 // bytes
	codesOverhead = 256      // of an entry beside its codes, about
)

// codesCache holds token codes that the store does not. Its key is what they
// were made of, model, format and text, and no more: two who may read the same
// text get the same codes.
type codesCache struct {
	entries *lru.Cache[[32]byte, []byte]
	lookups lru.Lookups
}

func newCodesCache() *codesCache {
	return &codesCache{entries: lru.New[[32]byte, []byte](codesBudget)}
}

// get returns nil where there are none.
func (c *codesCache) get(p Plan, text string) []byte {
	codes, hit := c.entries.Get(codesKey(p, text))
	c.lookups.Add(hit)
	return codes
}

func (c *codesCache) put(p Plan, text string, codes []byte) {
	c.entries.Put(codesKey(p, text), codes, codesOverhead+len(codes))
}

// codesKey: a model's digest and a format's name have no NUL.
func codesKey(p Plan, text string) [32]byte {
	return sha256.Sum256([]byte(p.Model + "\x00" + p.Codes + "\x00" + text))
}
