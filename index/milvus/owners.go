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

func (o *owners) set(claimed []claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range claimed {
		block := o.blocks[c.row/ownerBlockSize]
		if block == nil {
			block = new(ownerBlock)
			o.blocks[c.row/ownerBlockSize] = block
		}
		block[c.row%ownerBlockSize] = uint64(c.ordinal) + 1
	}
}

func (o *owners) of(row uint32) (ordinal uint32, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if block := o.blocks[row/ownerBlockSize]; block != nil {
		return uint32(block[row%ownerBlockSize] - 1), block[row%ownerBlockSize] != 0
	}
	return 0, false
}
