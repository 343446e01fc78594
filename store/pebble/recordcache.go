package pebble

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Bytes that the cache may take, and those that an entry takes beside its body.
const (
	recordCacheSize = 96 << 20
	recordOverhead  = 96
)

// recordCache keeps the bodies of records for the recheck of a search, which asks
// for a hundred and more at once: to find one in the tables takes some ten
// microseconds.
//
// What it holds is what the store holds, before and after a write that is under
// way: each write first removes what it touches, and what was read while one was
// under way, or before one that began since, is not kept. So bodies and
// a snapshot that were taken together (read) are one state of the store.
type recordCache struct {
	limit  int
	mu     sync.RWMutex
	writes uint64 // begun and ended: odd while one is under way
	bodies map[recordKey][]byte
	size   int
}

type recordKey struct{ generation, ordinal uint32 }

// recordsRead is a read of records that has begun.
type recordsRead struct {
	generation uint32
	ordinals   []uint32
	bodies     [][]byte         // of the ordinals; nil: not read yet, or there is none
	missing    int              // so many were not in the cache
	snapshot   *pebble.Snapshot // of the state that the bodies are of, if any is missing
	writes     uint64
}

func newRecordCache(limit int) *recordCache {
	return &recordCache{limit: limit, bodies: map[recordKey][]byte{}}
}

// read begins a read with what the cache has. Its snapshot is to be closed.
func (c *recordCache) read(db *pebble.DB, generation uint32, ordinals []uint32) recordsRead {
	r := recordsRead{generation: generation, ordinals: ordinals, bodies: make([][]byte, len(ordinals))}
	c.mu.RLock()
	defer c.mu.RUnlock()
	r.writes = c.writes
	for i, ordinal := range ordinals {
		if r.bodies[i] = c.bodies[recordKey{generation, ordinal}]; r.bodies[i] == nil {
			r.missing++
		}
	}
	if r.missing > 0 {
		r.snapshot = db.NewSnapshot()
	}
	return r
}

// keep adds the bodies that were read since, unless they may be old by now.
func (c *recordCache) keep(r *recordsRead) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes != r.writes || r.writes%2 == 1 {
		return
	}
	for i, ordinal := range r.ordinals {
		key := recordKey{r.generation, ordinal}
		if _, held := c.bodies[key]; !held && r.bodies[i] != nil {
			c.bodies[key] = r.bodies[i]
			c.size += len(r.bodies[i]) + recordOverhead
		}
	}
	c.shrink()
}

// shrink removes what a map yields first, in no order, until the rest is within the limit.
func (c *recordCache) shrink() {
	for key := range c.bodies {
		if c.size <= c.limit {
			return
		}
		c.remove(key)
	}
}

func (c *recordCache) remove(key recordKey) {
	if body, held := c.bodies[key]; held {
		c.size -= len(body) + recordOverhead
		delete(c.bodies, key)
	}
}

// write has a batch applied.
func (c *recordCache) write(batch *pebble.Batch, apply func()) {
	c.begin(batch)
	apply()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
}

// begin removes what the batch touches: all, where that is a range or nothing that it knows.
func (c *recordCache) begin(batch *pebble.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	for r := batch.Reader(); ; {
		kind, key, _, more, err := r.Next()
		switch {
		case err == nil && !more:
			return
		case err == nil && (kind == pebble.InternalKeyKindSet || kind == pebble.InternalKeyKindDelete):
			c.touch(key)
		default:
			clear(c.bodies)
			c.size = 0
		}
		if err != nil {
			return
		}
	}
}

func (c *recordCache) touch(key []byte) {
	if key[0] != tagRecord {
		return
	}
	if generation, ordinal, err := splitOrdinalKey(key); err == nil {
		c.remove(recordKey{generation, ordinal})
	}
}
