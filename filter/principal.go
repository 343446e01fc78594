package filter

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Principal is who asks. Tenant comes from the identity, never from a request.
type Principal struct {
	Tenant     string
	Subject    string
	Groups     []string
	Attributes Attributes
}

// Digest is the SHA-256 of an injective encoding of tenant, subject, set of
// groups and attributes: equal digests mean the same authority.
func (p Principal) Digest() [32]byte {
	var room [1024]byte // enough for most
	encoded := appendText(room[:0], p.Tenant)
	encoded = appendText(encoded, p.Subject)
	encoded = appendTexts(encoded, p.Groups)
	encoded = p.Attributes.AppendCanonical(encoded)
	return sha256.Sum256(encoded)
}

// known reports whether the identity says who asks. An unknown principal is
// admitted to nothing, not even to what is public.
func (p Principal) known() bool { return p.Tenant != "" && p.Subject != "" }

// names returns the readers that the principal is.
func (p *Policies) names(principal Principal) []Reader {
	groups := p.groups.of(principal.Groups)
	names := make([]Reader, 0, len(groups)+2)
	names = append(names, Public, User(principal.Subject))
	for _, group := range groups {
		names = append(names, Group(group))
	}
	return names
}

// appendText appends one string, its length first.
func appendText(dst []byte, text string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// appendTexts appends a set of strings: sorted, without duplicates, their number first.
func appendTexts(dst []byte, texts []string) []byte {
	if !sortedSet(texts) {
		texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	}
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, text := range texts {
		dst = appendText(dst, text)
	}
	return dst
}

func sortedSet(texts []string) bool {
	for i := 1; i < len(texts); i++ {
		if texts[i-1] >= texts[i] {
			return false
		}
	}
	return true
}
