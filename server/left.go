package server

import (
	"net"
	"syscall"
)

// left reports whether the other side has closed the connection, or its half of
// it. It reads nothing.
func left(c net.Conn) (gone bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) { gone = closed(fd) })
	return gone || err != nil
}
