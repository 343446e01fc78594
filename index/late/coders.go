package late

import "sync"

// Coders are the coders of every kind that was asked for: making one takes
// milliseconds, and the memory of its rotation. Safe for concurrent use.
type Coders struct{ byKind sync.Map } // Kind → func() *Coder

// Of returns the coder of a kind.
func (c *Coders) Of(kind Kind) *Coder {
	made, _ := c.byKind.LoadOrStore(kind, sync.OnceValue(func() *Coder { return NewCoder(kind) }))
	return made.(func() *Coder)()
}
