// Package gpu is where tensors run: devices, batching, and the embedder on top.
package gpu

import (
	"context"
	"time"

	"sluice/model"
)

// Info describes an embedder or a classifier. Digest identifies all that decides
// a vector or a score (weights, tokenizer, pooling, normalisation, precision):
// equal digests mean comparable ones.
type Info struct {
	Model           string
	Digest          string
	Dimensions      int
	TokenDimensions int // of a token's vector; they differ where Dense modules follow pooling
	MaxTokens       int // a longer text is cut, and its Embedding says so
	BatchTokens     int // that run at once
	Precision       string
	Pooling         model.Pooling
	Prompts         model.Prompts // for Request.Prompt
	Labels          []string      // of a classifier, one for each logit; none of an embedder
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
	Prompt       string    // goes before each text; its tokens count as Special
	IDs          [][]int32 // the texts' tokens, in place of Prompt and Texts; nil: none
	Truncation   Truncation
	Priority     Priority
	TokenVectors bool // wanted beside the pooled vectors, from the same forward pass

	// Reserve, unless nil, is told how many tokens a text has before it is queued,
	// text by text, by the goroutine that calls Embed. Its error ends the call.
	Reserve func(tokens int) error
}

// Truncation says what becomes of a text that is longer than the model takes.
// The zero value cuts its end; of a pair, the second text's, and the longer
// one's only where the first leaves no room.
type Truncation struct {
	Refuse       bool // cut nothing: a TooLongError
	Left         bool // cut the start instead
	LongestFirst bool // of a pair, cut the longer text first
}

// Timing is how long a text was tokenized, waited, and ran with its batch.
type Timing struct{ Tokenize, Queue, Run time.Duration }

// Embedding is one text's vector, of unit length; Norm is the length that it had
// before. Tokens counts what was embedded, special tokens included. TokenVectors,
// where asked for, is Tokens × TokenDimensions: the last hidden state, not
// normalised; Special then says which of the tokens are not of the text: those
// of the prompt, and what the tokenizer added, as [CLS].
type Embedding struct {
	Vector       []float32
	Norm         float32
	TokenVectors []float32
	Special      []bool
	Tokens       int
	Truncated    bool
	Timing       Timing
}

// Embedder turns texts into vectors. A text's vectors do not depend on what it
// is batched with. Safe for concurrent use.
type Embedder interface {
	Embed(ctx context.Context, r Request) ([]Embedding, error)
	Info() Info
}
