// Package lru is a cache of bounded weight.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds entries up to a budget of weight (bytes). The least recently used
// go first. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	budget  int
	weight  int
	order   *list.List // of *entry, most recently used first
	entries map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

// New returns an empty cache.
func New[K comparable, V any](budget int) *Cache[K, V] {
	return &Cache[K, V]{budget: budget, order: list.New(), entries: map[K]*list.Element{}}
}

// Get returns the value of a key, if it is cached.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*entry[K, V]).value, true
}

// GetOrPut returns the cached value, or puts what make makes.
func (c *Cache[K, V]) GetOrPut(key K, weight int, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.order.MoveToFront(element)
		return element.Value.(*entry[K, V]).value
	}
	value := make()
	c.insert(key, value, weight)
	return value
}

// Put sets a value and its weight. What is heavier than the budget is not kept.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.remove(element)
	}
	c.insert(key, value, weight)
}

func (c *Cache[K, V]) insert(key K, value V, weight int) {
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value, weight})
	c.weight += weight
	for c.weight > c.budget {
		c.remove(c.order.Back())
	}
}

func (c *Cache[K, V]) remove(element *list.Element) {
	removed := c.order.Remove(element).(*entry[K, V])
	delete(c.entries, removed.key)
	c.weight -= removed.weight
}
