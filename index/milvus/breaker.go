package milvus

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	failuresToOpen = 5
	openFor        = time.Second
)

var errOpen = errors.New("its last calls failed, so none is made now")

// breaker keeps calls from a server that fails: after some failures in a row it
// lets one call through a second, until one succeeds. The zero value is closed.
type breaker struct {
	mu       sync.Mutex
	failures int
	last     error     // why the last call failed
	until    time.Time // open until then; after it one call may try
	trying   bool
}

// enter reports errOpen where no call may be made. After nil, leave or abandon
// is to be called.
func (b *breaker) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < failuresToOpen {
		return nil
	}
	if b.trying || time.Now().Before(b.until) {
		return fmt.Errorf("%w: %w", errOpen, b.last)
	}
	b.trying = true
	return nil
}

// leave tells how the call ended.
func (b *breaker) leave(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if b.last = err; err == nil {
		b.failures = 0
		return
	}
	b.failures++
	b.until = time.Now().Add(openFor)
}

// abandon says that the caller gave up, which tells nothing of the server.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// failing reports why the breaker is open, or nil.
func (b *breaker) failing() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < failuresToOpen {
		return nil
	}
	return b.last
}
