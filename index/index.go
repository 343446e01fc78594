// Package index is the contract for what is found: vectors and postings. An
// index is derived from the store and can always be rebuilt from it. It knows
// nothing of policies: it is given a filter.Set and answers inside it.
package index

import (
	"context"
	"errors"

	"sluice/filter"
)

// Errors callers branch on.
var (
	ErrInvalid     = errors.New("invalid")
	ErrClosed      = errors.New("the index is closed")
	ErrRebuild     = errors.New("the index must be rebuilt from the store")
	ErrNewerFormat = errors.New("the index was written by a newer version of Sluice; start that version, or a newer one")
	ErrUnavailable = errors.New("a server that holds vectors cannot be used")
	ErrPartial     = errors.New("not all servers that hold vectors have answered")
)

// MaxQueryBytes is the longest text that Lexical takes. A longer one is
// refused, not cut: nothing is truncated in silence.
const MaxQueryBytes = 64 << 10

// Weights of a row's fields in the lexical leg: an occurrence in a title counts
// as so many, and so does the title's length. At least 1.
const (
	TitleWeight   = 1
	HeadingWeight = 1
	TextWeight    = 1
)

// Row is one chunk as the index sees it.
type Row struct {
	Row     uint32    // store row number
	Title   string    // of the document
	Heading string    // heading path
	Text    string    // of the chunk alone
	Vector  []float32 // unit length
}

// Document is all rows of the present version of one document, ascending by
// row number. One without rows is known to the index but never found.
type Document struct {
	Ordinal uint32
	Rows    []Row
	// Class is a hint: documents of one class are mostly allowed together. It
	// costs speed where it is wrong, and nothing else.
	Class uint64
	// Elsewhere: another daemon took the document and writes the same rows to the
	// servers that it shares with this one. Only a hint, too.
	Elsewhere bool
}

// Batch brings an index from one epoch to a later one. Each ordinal occurs at
// most once over Put and Delete. Put replaces what the index had of the ordinal,
// so that applying a batch twice is harmless.
//
// Epoch 0 marks a part of a rebuild: it is searchable at once, but a restart
// before a batch with an epoch finds an empty index.
type Batch struct {
	Epoch  uint64
	Put    []Document
	Delete []uint32
}

// Hit is one found row. Higher scores are better; ties are broken by row, ascending.
type Hit struct {
	Row     uint32
	Ordinal uint32
	Score   float32
}

// Index holds one generation of one collection. Its methods are safe for
// concurrent use.
type Index interface {
	// Apply makes a batch visible: a Reader taken later sees all of it, one taken
	// before none. An error means that nothing of it was applied. ErrInvalid: an
	// ordinal given twice, rows out of order, a vector that is not finite or of
	// other dimensions, an epoch before the last batch's.
	Apply(ctx context.Context, b Batch) error
	// Holds reports whether the row is live and belongs to the ordinal. Row
	// numbers are never used again, so then the index has that version whole.
	Holds(ordinal, row uint32) bool
	// Applied returns the epoch the index has durably reached: after a restart
	// the feed is replayed from there. 0: rebuild from the documents.
	Applied() uint64
	// Reader returns a consistent view; Close it.
	Reader() (Reader, error)
	// Flush makes what was applied durable (Applied then is the last batch's epoch).
	Flush(ctx context.Context) error
	// Close releases the index without flushing it; open Readers stay valid.
	Close() error
}

// Dropper is an index that can remove itself: its generation was dropped.
type Dropper interface {
	// Drop closes the index and removes all that it keeps. Open Readers must be closed.
	Drop() error
}

// Reader answers queries over one consistent state. Its methods are safe for
// concurrent use. k < 1 finds nothing.
type Reader interface {
	// Dense returns the k rows of allowed documents nearest to vector by inner
	// product, best first. ErrInvalid: a vector not finite or of other dimensions.
	// ErrPartial comes with what was found without the servers that failed.
	Dense(ctx context.Context, allowed filter.Set, vector []float32, k int) ([]Hit, error)
	// Lexical returns the k best rows of allowed documents by BM25 with the
	// statistics of the allowed documents only. The text may have phrases and
	// prefixes (text.Analyzer.Parse); no text is malformed. Rows without any
	// clause of the query are not hits. ErrInvalid: a text longer than
	// MaxQueryBytes.
	Lexical(ctx context.Context, allowed filter.Set, text string, k int) ([]Hit, error)
	Close()
}
