package retrieve

import (
	"errors"
	"fmt"
	"strings"

	"sluice/gpu"
	"sluice/index"
	"sluice/store"
)

// Bounds of what a request may bring.
const (
	MaxQueryBytes   = 8 << 10 // of text
	MaxQueryNumbers = 1 << 18 // in its token vectors
)

// given is what a request brings to search with, checked: its text, and vectors
// of length 1. What a text lacks, the embedding model makes of it, where the
// collection has one.
type given struct {
	text     string
	vector   []float32
	tokens   []float32
	embedded bool // the text can be embedded
}

// givenBy checks a request against the collection. What does not fit is store.ErrInvalid.
func (e *Engine) givenBy(r Request, s store.Settings) (given, error) {
	model := e.embedder.Info()
	g := given{text: r.Query, embedded: r.Query != "" && !s.Brings()}
	if len(r.Query) > MaxQueryBytes {
		return g, fmt.Errorf("%w: the query has %d bytes; at most %d are allowed", store.ErrInvalid, len(r.Query), MaxQueryBytes)
	}
	if strings.TrimSpace(r.Query) == "" && (r.Query != "" || len(r.Vector)+len(r.Vectors) == 0) {
		return g, fmt.Errorf("%w: the query is empty", store.ErrInvalid)
	}
	if err := g.takeVector(r, s, model); err != nil {
		return g, fmt.Errorf("%w: vector: %w", store.ErrInvalid, err)
	}
	if err := g.takeTokens(r, s, model); err != nil {
		return g, fmt.Errorf("%w: vectors: %w", store.ErrInvalid, err)
	}
	return g, nil
}

func (g *given) takeVector(r Request, s store.Settings, model gpu.Info) (err error) {
	dims := s.Dimensions(model.Dimensions)
	switch {
	case len(r.Vector) == 0:
		return nil
	case s.Brings() && s.Own.Dense == 0:
		return errors.New("the collection has token vectors only; bring vectors")
	case len(r.Vector) != dims:
		return fmt.Errorf("%d numbers; the collection's have %d", len(r.Vector), dims)
	}
	g.vector, err = index.Unit(r.Vector, dims)
	return err
}

// takeTokens also makes the vector where the collection has none but the mean
// of its token vectors.
func (g *given) takeTokens(r Request, s store.Settings, model gpu.Info) (err error) {
	dims := s.TokenDimensions(model.TokenDimensions)
	switch {
	case len(r.Vectors) == 0:
		return nil
	case dims == 0:
		return errors.New("the collection has none; leave them out")
	case r.Columns != dims:
		return fmt.Errorf("%d numbers each; the collection's have %d", r.Columns, dims)
	case len(r.Vectors) > MaxQueryNumbers:
		return fmt.Errorf("%d of them; at most %d of %d numbers are possible", len(r.Vectors)/dims, MaxQueryNumbers/dims, dims)
	}
	if g.tokens, err = index.Unit(r.Vectors, dims); err == nil && s.Brings() && s.Own.Dense == 0 {
		g.vector = index.Mean(g.tokens, dims)
	}
	return err
}

// What stages a request can feed.
func (g given) lexical() bool { return g.text != "" }
func (g given) dense() bool   { return g.vector != nil || g.embedded }
func (g given) late() bool    { return g.tokens != nil || g.embedded }

// strategy is the fullest that can be fed.
func (g given) strategy() string {
	switch {
	case g.lexical() && g.dense() && g.late():
		return HybridLate
	case g.late():
		return Late
	case g.lexical() && g.dense():
		return Hybrid
	case g.dense():
		return Dense
	}
	return Sparse
}

// lacks names what a strategy needs and the request does not bring; "" for nothing.
func (g given) lacks(strategy string) string {
	switch {
	case strategy != Dense && strategy != Late && !g.lexical():
		return "query"
	case strategy != Sparse && strategy != Late && !g.dense():
		return "vector"
	case (strategy == Late || strategy == HybridLate) && !g.late():
		return "vectors"
	}
	return ""
}
