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
func (q *request) patient(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(q.s.base, longest)
	defer cancel()
	defer q.watch(cancel)()
	return do(ctx)
}

// watch calls leave when the client has left, until stop is called: fasthttp
// does not say so.
func (q *request) watch(leave func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c := socketOf(q.http.Conn())
	go func() {
		defer close(done)
		ticker := time.NewTicker(presentEvery)
		defer ticker.Stop()
		watch(ctx, ticker.C, c, leave)
	}()
	return func() { cancel(); <-done }
}

// watch calls leave when the other side of the connection is gone; it ends with ctx.
func watch(ctx context.Context, look <-chan time.Time, c net.Conn, leave func()) {
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

// socketOf is what is below TLS and below what lingers.
func socketOf(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if l, ok := c.(*lingerConn); ok {
		c = l.Conn
	}
	return c
}
