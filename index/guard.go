package index

import (
	"fmt"
	"runtime/debug"
)

// Guarded is work for a goroutine of its own: a panic, which there would end the
// daemon, is its error.
func Guarded(work func() error) func() error {
	return func() (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("panicked: %v\n%s", reason, debug.Stack())
			}
		}()
		return work()
	}
}
