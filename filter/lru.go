package filter

import (
	"container/list"
	"sync"
)

// lru is a cache of bounded weight (bytes). The least recently used entries go
// first. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	mu      sync.Mutex
	budget  int
	weight  int
	order   *list.List // of *lruEntry, most recently used first
	entries map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

func newLRU[K comparable, V any](budget int) *lru[K, V] {
	return &lru[K, V]{budget: budget, order: list.New(), entries: map[K]*list.Element{}}
}

func (c *lru[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*lruEntry[K, V]).value, true
}

// getOrPut returns the cached value, or puts what make makes.
func (c *lru[K, V]) getOrPut(key K, weight int, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.order.MoveToFront(element)
		return element.Value.(*lruEntry[K, V]).value
	}
	value := make()
	c.insert(key, value, weight)
	return value
}

// put sets a value and its weight. What is heavier than the budget is not kept.
func (c *lru[K, V]) put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.remove(element)
	}
	c.insert(key, value, weight)
}

func (c *lru[K, V]) insert(key K, value V, weight int) {
	c.entries[key] = c.order.PushFront(&lruEntry[K, V]{key, value, weight})
	c.weight += weight
	for c.weight > c.budget {
		c.remove(c.order.Back())
	}
}

func (c *lru[K, V]) remove(element *list.Element) {
	entry := c.order.Remove(element).(*lruEntry[K, V])
	delete(c.entries, entry.key)
	c.weight -= entry.weight
}
