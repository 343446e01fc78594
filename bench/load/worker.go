package load

import (
	"context"
	"time"
)

// pace returns when the next request is due, at that time at the earliest, and
// whether it waited for that.
type pace func(ctx context.Context) (due time.Time, waited bool)

// worker has one connection.
type worker struct {
	conn       *conn
	requests   []Request
	next, step int
	begin, end time.Time // requests due in between count
	pace       pace

	latency, late Histogram
	sent          int
	failures      int
	failure       error
	last          time.Time
}

func newWorker(o *Options, i int, begin time.Time, pace pace) *worker {
	return &worker{
		conn: newConn(o.Address, o.Timeout), requests: o.Requests, next: i, step: o.Connections,
		begin: begin, end: begin.Add(o.Duration), pace: pace, latency: NewHistogram(), late: NewHistogram(),
	}
}

// work returns when the time is over. The end of ctx ends the request under way.
func (w *worker) work(ctx context.Context) {
	defer w.conn.Close()
	for ctx.Err() == nil {
		due, waited := w.pace(ctx)
		if !due.Before(w.end) {
			return
		}
		w.send(ctx, due, waited)
	}
}

func (w *worker) send(ctx context.Context, due time.Time, waited bool) {
	sent := time.Now()
	err := w.conn.do(ctx, w.requests[w.next%len(w.requests)])
	answered := time.Now()
	w.next += w.step
	w.sent++
	if due.Before(w.begin) {
		return
	}
	w.last = answered
	if err != nil {
		w.failures++
		w.failure = err
		return
	}
	w.latency.Record(answered.Sub(due))
	if waited {
		w.late.Record(sent.Sub(due))
	}
}
