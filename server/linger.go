package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	maxUnread   = 64 << 10 // a larger body may be unread when its request fails
	lingerTime  = time.Second
	lingerBytes = 64 << 20

	firstWait = 5 * time.Millisecond
	lastWait  = time.Second
)

// lingerListener's connections can be told to close gently. A connection that
// is closed with unread bytes is reset, and the reset may overtake the answer:
// a client still sending its too large body would never see the 413.
type lingerListener struct{ net.Listener }

// Accept waits out what passes, such as a lack of file descriptors: fasthttp
// would stop serving.
func (l lingerListener) Accept() (net.Conn, error) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		c, err := l.Listener.Accept()
		if err == nil {
			return &lingerConn{Conn: c}, nil
		}
		var passing interface{ Temporary() bool }
		if !errors.As(err, &passing) || !passing.Temporary() {
			return nil, err
		}
		time.Sleep(wait)
	}
}

type lingerConn struct {
	net.Conn
	gently atomic.Bool
}

// linger makes the connection's Close wait until the client has stopped
// sending, within bounds.
func linger(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(*lingerConn); ok {
		c.gently.Store(true)
	}
}

func (c *lingerConn) Close() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if ok && c.gently.Swap(false) && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	return c.Conn.Close()
}
