package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps with the precision of the kernel's timers. Go's own are a
// millisecond late where all else sleeps, and the kernel's by default 50 µs.
func pause(d time.Duration) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread; without it the sleep is longer
	for left := unix.NsecToTimespec(int64(d)); unix.Nanosleep(&left, &left) == unix.EINTR; {
	}
}
