//go:build unix

package server

import (
	"net"
	"syscall"
)

// left reports whether the other side has closed the connection. It reads
// nothing. Bytes that wait to be read hide it.
func left(c net.Conn) (gone bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	var one [1]byte
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK) // Go's sockets do not block
		gone = err == nil && n == 0 || err == syscall.ECONNRESET
	})
	return gone || err != nil
}
