package complexity

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Model is a logistic model over the features.
type Model struct {
	Trained  []Source  `json:"trained"`
	Features []string  `json:"features"` // Names
	Bias     float64   `json:"bias"`
	Weights  []float64 `json:"weights"` // of Features
}

// Source is what a model was trained on: the answerable cases of a split, and
// which of them BM25 answers worse than late interaction.
type Source struct {
	Dataset string   `json:"dataset"`
	Digest  string   `json:"digest"` // SHA-256 of the data set's content
	Split   string   `json:"split"`
	Model   string   `json:"model"` // of the embeddings
	Cases   int      `json:"cases"`
	Hard    []string `json:"hard"` // their identities
}

//go:embed model.json
var trained []byte

// Trained is the model that `sluice eval router` made.
var Trained = sync.OnceValue(func() Model {
	var m Model
	if err := json.Unmarshal(trained, &m); err != nil {
		panic(fmt.Errorf("the model that is built in: %w", err)) // a test reads it
	}
	if !slices.Equal(m.Features, Names[:]) || len(m.Weights) != len(Names) {
		panic("the model that is built in has other features; train it again with sluice eval router")
	}
	return m
})

// Of is the probability, by the model, that words do not suffice for a query.
func (m Model) Of(query string) float64 {
	z := m.Bias
	for i, f := range FeaturesOf(query) {
		z += m.Weights[i] * f
	}
	return 1 / (1 + math.Exp(-z))
}

// Version names the model: the first 8 hexadecimal digits of the SHA-256 of its
// features and coefficients.
func (m Model) Version() string {
	sum := sha256.Sum256(fmt.Append(nil, m.Features, m.Bias, m.Weights))
	return hex.EncodeToString(sum[:4])
}
