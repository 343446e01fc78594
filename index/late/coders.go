package late

import "sync"

// Coders are the coders of every kind that was asked for: making one takes
// milliseconds, and the memory of its rotation. Safe for concurrent use.
type Coders struct {
	mu     sync.Mutex
	byKind map[Kind]*Coder
}

// Of returns the coder of a kind.
func (c *Coders) Of(kind Kind) *Coder {
	c.mu.Lock()
	defer c.mu.Unlock()
	coder := c.byKind[kind]
	if coder == nil {
		if c.byKind == nil {
			c.byKind = map[Kind]*Coder{}
		}
		coder = NewCoder(kind)
		c.byKind[kind] = coder
	}
	return coder
}
