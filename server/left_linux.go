package server

import "golang.org/x/sys/unix"

// closed sees the end of the other side's stream behind bytes that wait to be
// read: a further request, or the alert with which TLS takes its leave.
func closed(fd uintptr) bool {
	const signs = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR
	look := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	_, err := unix.Poll(look[:], 0)
	return err == nil && look[0].Revents&signs != 0
}
