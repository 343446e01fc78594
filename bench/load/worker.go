package load

import (
	"context"
	"sync/atomic"
	"time"
)

// pace waits until a request is due, and returns which.
type pace func(ctx context.Context) arrival

// worker has one connection.
type worker struct {
	conn       *conn
	requests   []Request
	begin, end time.Time // requests due in between count
	pace       pace
	stages     *Stages
	answered   *atomic.Int64 // by all workers

	latency, late Histogram
	series        series
	sent          int
	failures      int
	failure       error
	last          time.Time
}

func newWorker(o *Options, begin time.Time, pace pace, stages *Stages, answered *atomic.Int64) *worker {
	return &worker{
		conn: newConn(o.dial, o.Timeout), requests: o.Requests, begin: begin, end: begin.Add(o.Duration), pace: pace, stages: stages, answered: answered,
		latency: NewHistogram(), late: NewHistogram(), series: newSeries(o.Duration),
	}
}

// closedLoop has a request due when the connection is free: of so many workers
// each sends every so manieth.
func closedLoop(first, workers int) pace {
	next := first - workers
	return func(context.Context) arrival {
		next += workers
		return arrival{due: time.Now(), number: next}
	}
}

// work returns when the time is over. The end of ctx ends the request under way.
func (w *worker) work(ctx context.Context) {
	defer w.conn.Close()
	for ctx.Err() == nil {
		a := w.pace(ctx)
		if !a.due.Before(w.end) {
			return
		}
		w.send(ctx, a)
	}
}

func (w *worker) send(ctx context.Context, a arrival) {
	sent := time.Now()
	err := w.conn.do(ctx, w.requests[a.number%len(w.requests)])
	answered := time.Now()
	w.sent++
	w.answered.Add(1)
	if a.due.Before(w.begin) {
		return
	}
	w.last = answered
	if err != nil {
		w.failures++
		w.failure = err
		return
	}
	w.latency.Record(answered.Sub(a.due))
	w.series.add(a.due.Sub(w.begin), answered.Sub(a.due))
	w.stages.add(w.conn.response.Header.Peek("Server-Timing"))
	if a.waited {
		w.late.Record(sent.Sub(a.due))
	}
}
