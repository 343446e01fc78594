package milvus

import "sync"

// owners says which document a row is of. Row numbers are never used again, so
// what it says stays true.
type owners struct {
	mu     sync.RWMutex
	blocks map[uint32]*ownerBlock
}

// ownerBlock has ordinals + 1; 0: not known.
type ownerBlock [ownerBlockSize]uint64

const ownerBlockSize = 1 << 12

func newOwners() *owners { return &owners{blocks: map[uint32]*ownerBlock{}} }

func (o *owners) set(row, ordinal uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	block := o.blocks[row/ownerBlockSize]
	if block == nil {
		block = new(ownerBlock)
		o.blocks[row/ownerBlockSize] = block
	}
	block[row%ownerBlockSize] = uint64(ordinal) + 1
}

func (o *owners) of(row uint32) (ordinal uint32, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if block := o.blocks[row/ownerBlockSize]; block != nil {
		return uint32(block[row%ownerBlockSize] - 1), block[row%ownerBlockSize] != 0
	}
	return 0, false
}
