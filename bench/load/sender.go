package load

import (
	"context"
	"runtime"
	"time"
)

// sender sends the requests of an open loop at their times. It is one goroutine
// on a thread of its own: nobody has to be woken between the clock and the wire.
type sender struct {
	arrivals *arrivals
	free     chan *worker // whose connections wait, the longest free first
}

// run ends when the time is over or ctx ends, and lets go of all workers.
func (s *sender) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		w := <-s.free
		a := s.arrivals.take(ctx)
		if ctx.Err() != nil || !a.due.Before(s.arrivals.end) {
			w.release()
			break
		}
		w.send(a)
	}
	for range cap(s.free) - 1 {
		(<-s.free).release()
	}
}

// send says so when it is done: until then the connection is the sender's.
func (w *worker) send(a arrival) {
	at := time.Now()
	w.conn.send(w.request(a.number))
	w.sent <- sending{a.due, at}
}

// release ends a worker that waits.
func (w *worker) release() {
	socket := w.conn.socket
	close(w.sent)
	if socket != nil {
		_ = socket.Close()
	}
}
