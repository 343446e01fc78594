package load

import (
	"context"
	"sync/atomic"
	"time"
)

// worker has one connection.
type worker struct {
	conn       *conn
	requests   []Request
	begin, end time.Time // requests due in between count
	stages     *Stages
	answered   *atomic.Int64 // by all workers

	sent chan sending // open loop: holds what is under way; closed: let go

	latency, late Histogram
	series        series
	count         int
	failures      int
	failure       error
	last          time.Time
}

// sending is a request on its way.
type sending struct{ due, at time.Time }

func newWorker(o *Options, c *conn, begin time.Time, stages *Stages, answered *atomic.Int64) *worker {
	return &worker{
		conn: c, requests: o.Requests, begin: begin, end: begin.Add(o.Duration), stages: stages, answered: answered,
		sent: make(chan sending, 1), latency: NewHistogram(), late: NewHistogram(), series: newSeries(o.Duration),
	}
}

// loop sends every so manieth request when the one before is answered, until
// the time is over. The end of ctx ends the request under way.
func (w *worker) loop(ctx context.Context, first, every int) {
	defer w.conn.Close()
	for number := first; ctx.Err() == nil; number += every {
		due := time.Now()
		if !due.Before(w.end) {
			return
		}
		err := w.conn.do(ctx, w.request(number))
		w.note(due, time.Now(), err)
	}
}

// answer reads the answers to what a sender sends over the connection, until
// that lets go of it.
func (w *worker) answer(ctx context.Context, free chan<- *worker) {
	defer w.conn.Close()
	var freed time.Time
	err := w.conn.open(ctx)
	for {
		free <- w
		if err == nil {
			err = w.conn.read()
		}
		answered := time.Now()
		s, more := <-w.sent
		if !more {
			return
		}
		if freed.Before(s.due) && !s.due.Before(w.begin) {
			w.late.Record(s.at.Sub(s.due))
		}
		w.note(s.due, answered, w.conn.settle(err))
		err, freed = w.conn.open(ctx), time.Now()
	}
}

func (w *worker) request(number int) Request { return w.requests[number%len(w.requests)] }

func (w *worker) note(due, answered time.Time, err error) {
	w.count++
	w.answered.Add(1)
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
	w.series.add(due.Sub(w.begin), answered.Sub(due))
	w.stages.add(w.conn.response.Header.Peek("Server-Timing"))
}
