//go:build unix && !linux

package server

import "syscall"

// closed sees the end of the other side's stream, unless bytes wait to be read.
func closed(fd uintptr) bool {
	var one [1]byte
	n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK) // Go's sockets do not block
	return err == nil && n == 0 || err == syscall.ECONNRESET
}
