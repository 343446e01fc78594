package server

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

const (
	presentEvery = time.Second // looks at whether the client is still there
	longest      = time.Hour   // that a request without the usual deadline may take
)

// patient does what takes as long as the client waits for it, an hour at most.
// fasthttp does not say that a client has left, so that is looked for.
func (q *request) patient(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(q.s.base, longest)
	ticker := time.NewTicker(presentEvery)
	defer ticker.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch(ctx, ticker.C, q.http.Conn(), cancel)
	}()
	defer func() { cancel(); <-done }()
	return do(ctx)
}

// watch calls leave when the other side of the connection is gone; it ends with ctx.
func watch(ctx context.Context, look <-chan time.Time, c net.Conn, leave func()) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if l, ok := c.(*lingerConn); ok {
		c = l.Conn
	}
	for {
		select {
		case <-look:
			if left(c) {
				leave()
			}
		case <-ctx.Done():
			return
		}
	}
}
