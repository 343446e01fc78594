package late

import (
	"sync"

	"sluice/filter/lru"
)

// codersBudget bounds the rotations that are kept, in bytes: sixteen of 1,024
// dimensions, or four of 2,048.
const codersBudget = 64 << 20

// Coders are the coders of the kinds that were asked for last: making one takes
// milliseconds, and the memory of its rotation. Safe for concurrent use.
type Coders struct {
	byKind *lru.Cache[Kind, func() *Coder]
}

// NewCoders returns Coders that have made none.
func NewCoders() *Coders { return &Coders{lru.New[Kind, func() *Coder](codersBudget)} }

// Of returns the coder of a kind.
func (c *Coders) Of(kind Kind) *Coder {
	return c.byKind.GetOrPut(kind, 4*kind.Dimensions*kind.Dimensions, func() func() *Coder {
		return sync.OnceValue(func() *Coder { return NewCoder(kind) })
	})()
}
