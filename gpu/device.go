package gpu

import "context"

// Batch is token sequences laid end to end, without padding: sequence i is
// IDs[Offsets[i]:Offsets[i+1]], with the token type ids beside it.
type Batch struct {
	IDs, Types []int32
	Offsets    []int
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

// Device runs one model's encoder. Safe for concurrent use; batches may wait
// for each other.
type Device interface {
	// Embed writes one pooled vector of unit length per sequence to dst, Len ×
	// Dimensions. A sequence's vector does not depend on the others, not in a
	// single bit. An error concerns the batch as a whole: dst is undefined.
	Embed(ctx context.Context, batch *Batch, dst []float32) error
	Dimensions() int
	// Precision names the arithmetic, as in "f32"; vectors of different
	// precisions are not to be mixed.
	Precision() string
	Close() error
}
