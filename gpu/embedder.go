// Package gpu is where tensors run: devices, batching, and the embedder on top.
package gpu

import "context"

// Info describes an embedder. Digest identifies all that decides a vector
// (weights, tokenizer, pooling, normalisation, precision): equal digests mean
// comparable vectors.
type Info struct {
	Model      string
	Digest     string
	Dimensions int
	MaxTokens  int // a longer text is cut, and its Embedding says so
	Precision  string
}

// Embedding is one text's vector, unit length. Tokens counts what was
// embedded, special tokens included.
type Embedding struct {
	Vector    []float32
	Tokens    int
	Truncated bool
}

// Embedder turns texts into vectors. A text's vector does not depend on what
// it is batched with. Safe for concurrent use.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([]Embedding, error)
	Info() Info
}
