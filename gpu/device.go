package gpu

import "context"

// Batch is token sequences laid end to end, without padding: sequence i is
// IDs[Offsets[i]:Offsets[i+1]], with the token type ids beside it.
type Batch struct {
	IDs, Types []int32
	Offsets    []int
	// GiveWay is called again and again by a device that computes in this process, from
	// each of its goroutines: it returns when others have gone first. nil: none do.
	GiveWay func()
}

// Reset empties b and keeps its memory.
func (b *Batch) Reset() {
	b.IDs, b.Types, b.Offsets = b.IDs[:0], b.Types[:0], append(b.Offsets[:0], 0)
}

// Append adds one sequence.
func (b *Batch) Append(ids, types []int32) {
	b.IDs, b.Types = append(b.IDs, ids...), append(b.Types, types...)
	b.Offsets = append(b.Offsets, len(b.IDs))
}

// Len is the number of sequences.
func (b *Batch) Len() int { return max(0, len(b.Offsets)-1) }

// Tokens is the number of tokens of all sequences.
func (b *Batch) Tokens() int { return len(b.IDs) }

// Output is what a batch is asked for: a device fills the slices that are not
// nil, all from the same forward pass.
type Output struct {
	Pooled []float32 // Len × Dimensions: one vector of unit length per sequence
	Norms  []float32 // Len, with Pooled only: the length that each vector had before
	Tokens []float32 // Tokens × the encoder's hidden size: the last hidden state as it is, token by token
	Logits []float32 // Len × Labels: the classification head's scores before sigmoid or softmax
}

// Device runs one model. Safe for concurrent use; batches may wait for each
// other.
type Device interface {
	// Run fills out. What it says of a sequence does not depend on the others,
	// not in a single bit. An error concerns the batch as a whole: out is then
	// undefined. It refuses what the model has no head for.
	Run(ctx context.Context, batch *Batch, out Output) error
	// Dimensions is the length of a pooled vector.
	Dimensions() int
	// Labels is the number of a sequence's logits; 0 without a classification head.
	Labels() int
	// Precision names the arithmetic, as in "f32"; vectors of different
	// precisions are not to be mixed.
	Precision() string
	Close() error
}

// Aside is a Device that runs short interactive batches while its neighbour, the
// device before it in Served, runs a bulk one.
type Aside interface {
	Device
	AsideTokens() int // of the longest
}

// Prompt is a Device in this process that returns soon after its context has
// ended, whatever happens: a caller may run a batch on it in person.
type Prompt interface {
	Device
	Prompt()
}
