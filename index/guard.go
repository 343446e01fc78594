package index

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanicked is what panics become. Its text goes on with the reason and the stack:
// it is for the log.
var ErrPanicked = errors.New("panicked")

// Guarded is work for a goroutine of its own: a panic, which there would end the
// daemon, is its error.
func Guarded(work func() error) func() error {
	return func() (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("%w: %v\n%s", ErrPanicked, reason, debug.Stack())
			}
		}()
		return work()
	}
}
