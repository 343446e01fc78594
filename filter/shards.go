package filter

import (
	"hash/maphash"
	"iter"
	"maps"
)

// shardCount bounds what one change copies: a shard of each map it touches.
const shardCount = 512

// shards is a persistent hash map. Editing yields another one that shares
// every shard that was not written to; the original never changes.
type shards[K comparable, V any] struct {
	seed  maphash.Seed
	parts []map[K]V // nil, or shardCount of them
	size  int
}

func newShards[K comparable, V any]() shards[K, V] {
	return shards[K, V]{seed: maphash.MakeSeed(), parts: make([]map[K]V, shardCount)}
}

func (s shards[K, V]) shard(key K) int {
	return int(maphash.Comparable(s.seed, key) % shardCount)
}

func (s shards[K, V]) get(key K) (V, bool) {
	value, ok := s.parts[s.shard(key)][key]
	return value, ok
}

func (s shards[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, part := range s.parts {
			for key, value := range part {
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

func (s shards[K, V]) edit() *shardsEdit[K, V] {
	s.parts = append([]map[K]V(nil), s.parts...)
	return &shardsEdit[K, V]{shards: s}
}

// shardsEdit is a shards under construction. It copies each shard when it
// first writes to it.
type shardsEdit[K comparable, V any] struct {
	shards[K, V]
	owned [shardCount]bool
}

func (e *shardsEdit[K, V]) own(key K) map[K]V {
	i := e.shard(key)
	if !e.owned[i] {
		e.owned[i] = true
		e.parts[i] = maps.Clone(e.parts[i])
	}
	if e.parts[i] == nil {
		e.parts[i] = map[K]V{}
	}
	return e.parts[i]
}

func (e *shardsEdit[K, V]) set(key K, value V) {
	part := e.own(key)
	before := len(part)
	part[key] = value
	e.size += len(part) - before
}

func (e *shardsEdit[K, V]) delete(key K) {
	part := e.own(key)
	before := len(part)
	delete(part, key)
	e.size += len(part) - before
}
