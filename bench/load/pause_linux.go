package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// looked is the end of a pause that is spent looking at the clock: about as long
// as sleepers are late. Where others want the core, one who looks for longer is
// let on it less often, and is later.
const looked = 50 * time.Microsecond

// pause waits with the precision of the clock. Go's timers are a millisecond late
// where all else sleeps, and the kernel's by default 50 µs.
func pause(d time.Duration) {
	until := time.Now().Add(d)
	if d > looked {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread; without it the sleep is longer
		for left := unix.NsecToTimespec(int64(d - looked)); unix.Nanosleep(&left, &left) == unix.EINTR; {
		}
	}
	look(time.Until(until))
}
