package audit

import "sync/atomic"

// What has become of an entry for which somebody waits.
const (
	queuing int32 = iota // the writer has not taken it
	taken                // it is being written
	written              // or has failed: the outcome is there
	left                 // nobody waits any longer
)

// waiter is whoever waits until a record is written. It and the writer agree on
// who was first: what nobody waits for is not written, and what is being written
// when its waiter leaves is followed by the word that it was refused.
type waiter struct {
	state   atomic.Int32
	outcome chan error // holds one
	refuses bool       // with an error what the record is about is not done
}

// take reports false if nobody waits any longer.
func (w *waiter) take() bool { return w.state.CompareAndSwap(queuing, taken) }

// leave returns the state in which the entry was left; written: it was not, and
// the outcome is there.
func (w *waiter) leave() int32 {
	for {
		state := w.state.Load()
		if state == written || w.state.CompareAndSwap(state, left) {
			return state
		}
	}
}

// refused hands the outcome over and reports whether the action is not done.
func (w *waiter) refused(outcome error) bool {
	w.outcome <- outcome
	late := !w.state.CompareAndSwap(taken, written)
	return w.refuses && (late || outcome != nil)
}
