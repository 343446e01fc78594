package store

import (
	"cmp"
	"fmt"
)

// Settings of a collection. They are fixed when it is created.
type Settings struct {
	Analyzer string // lexical analyzer: "english" (default), "standard", …
	CodeBits int    // a dimension, of the token codes kept for late interaction: 1 or 8; 0: none are kept
	Chunker  string // of its first generation; "": the one of each document's format
	Own      Own    // what its documents bring; the zero value: its vectors are the embedding model's
}

// Own says which vectors documents bring themselves, and of how many
// dimensions; 0: none of that kind. Where they bring token vectors alone, the
// mean of a passage's is its one vector.
type Own struct {
	Dense int // one vector a passage
	Multi int // a vector for every token, patch, … of a passage
}

// Bounds on the dimensions of vectors that documents bring.
const (
	MaxDenseDimensions = 8192
	MaxMultiDimensions = 2048
)

// ownModel is in the place of a model's digest where there is no model.
const ownModel = "own/1"

// Brings reports whether documents bring their vectors.
func (s Settings) Brings() bool { return s.Own != Own{} }

// Model is the digest of what makes the vectors, given that of the embedding model.
func (s Settings) Model(embedder string) string {
	if s.Brings() {
		return ownModel
	}
	return embedder
}

// Dimensions is the length of the vector of a passage, given the embedding model's.
func (s Settings) Dimensions(embedder int) int {
	return cmp.Or(s.Own.Dense, s.Own.Multi, embedder)
}

// TokenDimensions is the length of the token vectors that codes are made of,
// given the embedding model's; 0: there are none.
func (s Settings) TokenDimensions(embedder int) int {
	if s.Brings() {
		return s.Own.Multi
	}
	return embedder
}

// Validate reports, as ErrInvalid, settings that no collection can have.
func (s Settings) Validate() error {
	switch {
	case s.Chunker != "" && s.Brings():
		return fmt.Errorf("%w: documents that bring their vectors bring their passages too: name no chunker", ErrInvalid)
	case s.CodeBits != 0 && s.CodeBits != 1 && s.CodeBits != 8:
		return fmt.Errorf("%w: token codes of %d bits; use 1 or 8", ErrInvalid, s.CodeBits)
	case s.Own.Dense < 0 || s.Own.Dense > MaxDenseDimensions:
		return fmt.Errorf("%w: vectors of %d dimensions; use 1 to %d", ErrInvalid, s.Own.Dense, MaxDenseDimensions)
	case s.Own.Multi < 0 || s.Own.Multi > MaxMultiDimensions:
		return fmt.Errorf("%w: token vectors of %d dimensions; use 1 to %d", ErrInvalid, s.Own.Multi, MaxMultiDimensions)
	case s.Brings() && (s.Own.Multi > 0) != (s.CodeBits > 0):
		return fmt.Errorf("%w: token vectors are kept as codes, and nothing else is: use code_bits 1 or 8 with multi_dimensions, and 0 without", ErrInvalid)
	}
	return nil
}
