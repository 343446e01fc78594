// Package load sends HTTP requests and measures how long they take: in a closed
// loop, where every connection sends its next request when the one before is
// answered, or in an open one, where requests come at a rate whatever becomes
// of those before, and a request's time runs from when it was due.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Options say what Run sends.
type Options struct {
	Address     string        // host:port
	Requests    []Request     // sent in turn
	Connections int           // a connection has one request under way at most (default 1)
	Rate        float64       // requests a second, Poisson; 0: a closed loop
	Seed        uint64        // of the arrivals
	Warmup      time.Duration // sent, not counted
	Duration    time.Duration // counted (default 1 s)
	Timeout     time.Duration // of a request (default 1 min)
}

func (o *Options) setDefaults() error {
	if len(o.Requests) == 0 {
		return errors.New("there are no requests to send")
	}
	o.Connections = max(o.Connections, 1)
	if o.Duration <= 0 {
		o.Duration = time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	return nil
}

// Result is what Run measured.
type Result struct {
	Latency  Histogram     // of answered requests; of an open loop from when they were due
	Late     Histogram     // open loop: how late the generator itself sent what an idle connection waited for
	Sent     int           // all requests, the warm-up's too
	Failures int           // requests without an answer, or with another than 200
	Failure  error         // one of them
	Elapsed  time.Duration // from the first counted request to the last answer
}

// Rate is answered requests a second.
func (r Result) Rate() float64 { return float64(r.Latency.Count()) / r.Elapsed.Seconds() }

// Run sends requests until the time is over or ctx ends; the latter is an
// error. Failed requests are counted, and sent no more than others.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.setDefaults(); err != nil {
		return Result{}, err
	}
	begin := time.Now().Add(o.Warmup)
	pace := closedLoop
	if o.Rate > 0 {
		pace = newArrivals(time.Now(), begin.Add(o.Duration), o.Rate, o.Seed).take
	}
	workers := make([]*worker, o.Connections)
	var running sync.WaitGroup
	for i := range workers {
		w := newWorker(&o, i, begin, pace)
		workers[i] = w
		running.Go(func() { w.work(ctx) })
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("the load was cut short: %w", err)
	}
	return merge(workers, begin), nil
}

// closedLoop has a request due when a connection is free.
func closedLoop(context.Context) (due time.Time, waited bool) { return time.Now(), false }

func merge(workers []*worker, begin time.Time) Result {
	r := Result{Latency: NewHistogram(), Late: NewHistogram()}
	last := begin
	for _, w := range workers {
		r.Latency.Merge(w.latency)
		r.Late.Merge(w.late)
		r.Sent += w.sent
		r.Failures += w.failures
		if w.failure != nil {
			r.Failure = w.failure
		}
		if w.last.After(last) {
			last = w.last
		}
	}
	r.Elapsed = last.Sub(begin)
	return r
}
