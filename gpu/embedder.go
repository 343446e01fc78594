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

// Priority says who waits for whom.
type Priority int

const (
	// Interactive is for what somebody waits for. It goes first.
	Interactive Priority = iota
	// Bulk is for what can wait: it delays no interactive request by more than
	// one batch, and is never kept out altogether.
	Bulk
)

func (p Priority) String() string {
	if p == Interactive {
		return "interactive"
	}
	return "bulk"
}

// Request is texts to embed. Special tokens in them are text like any other.
type Request struct {
	Texts        []string
	Priority     Priority
	TokenVectors bool // wanted beside the pooled vectors, from the same forward pass
}

// Embedding is one text's vector, unit length. Tokens counts what was
// embedded, special tokens included. TokenVectors, where asked for, is Tokens ×
// Dimensions: the last hidden state, not normalised; Special then says which of
// the tokens the tokenizer added, as [CLS].
type Embedding struct {
	Vector       []float32
	TokenVectors []float32
	Special      []bool
	Tokens       int
	Truncated    bool
}

// Embedder turns texts into vectors. A text's vectors do not depend on what it
// is batched with. Safe for concurrent use.
type Embedder interface {
	Embed(ctx context.Context, r Request) ([]Embedding, error)
	Info() Info
}
