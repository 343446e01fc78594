package local

import "sluice/index/local/ivf"

// scratch is the memory of one query, used again by the next.
type scratch struct {
	lexical lexicalMemory
	dense   denseMemory
}

// denseMemory is what the dense leg needs.
type denseMemory struct {
	query      ivf.Query
	near       ivf.Scratch
	live       []uint32 // slots
	scores     []float32
	contenders []contender
}
