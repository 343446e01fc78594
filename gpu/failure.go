package gpu

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClosed is returned by calls that Close overtook.
	ErrClosed = errors.New("scheduler is closed")
	// ErrDevice is wrapped where a device failed, or no device works: the same
	// request may succeed later.
	ErrDevice = errors.New("device failed")
	// ErrOverloaded is what an OverloadedError is.
	ErrOverloaded = errors.New("the queue is full")

	errNotFinite = errors.New("the output is not finite")
)

// OverloadedError refuses a request that found the queue full.
type OverloadedError struct {
	Drain time.Duration // until what waits is done, at the speed measured last
}

func (e *OverloadedError) Error() string {
	return fmt.Sprintf("%v; it drains in %v", ErrOverloaded, e.Drain.Round(time.Millisecond))
}

func (e *OverloadedError) Unwrap() error { return ErrOverloaded }

// TooLongError refuses a text that may not be cut.
type TooLongError struct {
	Text          int // its place in the request
	Tokens, Limit int // special ones included
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("text %d has %d tokens, and the model takes %d", e.Text, e.Tokens, e.Limit)
}
