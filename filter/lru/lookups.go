package lru

import "sync/atomic"

// Lookups counts how often what was looked for was there. The zero value is
// ready, and safe for concurrent use.
type Lookups struct{ hits, misses atomic.Uint64 }

// Add counts one.
func (l *Lookups) Add(hit bool) {
	if hit {
		l.hits.Add(1)
	} else {
		l.misses.Add(1)
	}
}

// Count returns how many were counted.
func (l *Lookups) Count() (hits, misses uint64) { return l.hits.Load(), l.misses.Load() }
