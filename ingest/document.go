// Package ingest is a document's way: check, parse, chunk, embed, commit, wait
// until it is searchable.
package ingest

import (
	"crypto/sha256"
	"fmt"
	"unicode"
	"unicode/utf8"

	"sluice/document"
	"sluice/filter"
	"sluice/store"
)

// Bounds of a document's key and title.
const (
	MaxKeyBytes   = 1024
	MaxTitleBytes = 1024
)

// Document is what a caller brings.
type Document struct {
	Key    string
	Title  string // "" takes the document's own
	Format string
	Text   []byte
	Access filter.Access
	Keeps  filter.AccessFields // of Access: on a document that is there, these stay as they are

	Passages []Passage // in place of format and text, where the collection wants them
}

func (d Document) check() error {
	if err := checkKey(d.Key); err != nil {
		return err
	}
	if len(d.Title) > MaxTitleBytes {
		return fmt.Errorf("%w: the title has %d bytes; at most %d are allowed", store.ErrInvalid, len(d.Title), MaxTitleBytes)
	}
	if !plain(d.Title) {
		return fmt.Errorf("%w: the title has control characters or is not valid UTF-8", store.ErrInvalid)
	}
	return nil
}

// checkKey refuses keys that cannot be a document's: empty, over 1,024 bytes,
// not UTF-8, or with control characters.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: the document has no key", store.ErrInvalid)
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("%w: the key has %d bytes; at most %d are allowed", store.ErrInvalid, len(key), MaxKeyBytes)
	case !plain(key):
		return fmt.Errorf("%w: the key has control characters or is not valid UTF-8", store.ErrInvalid)
	}
	return nil
}

func plain(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// identity is what makes two writes the same version: the parser, title, text and
// passages as they were brought, each length-prefixed so that no two collide.
func (d Document) identity() [32]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(document.Parser(d.Format)), []byte(d.Title), d.Text} {
		hashPart(h, part)
	}
	for _, p := range d.Passages {
		p.hashInto(h)
	}
	return [32]byte(h.Sum(nil))
}
