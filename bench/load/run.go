// Package load sends HTTP requests and measures how long they take: in a closed
// loop, where every connection sends its next request when the one before is
// answered, or in an open one, where requests come at a rate whatever becomes
// of those before, and a request's time runs from when it was due.
package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what Run sends.
type Options struct {
	Address     string          // host:port
	Requests    []Request       // sent in turn
	Connections int             // a connection has one request under way at most (default 1)
	Rate        float64         // requests a second, Poisson; 0: a closed loop
	Seed        uint64          // of the arrivals
	Times       []time.Duration // ascending: an open loop of each request once, at its time; without Rate, Warmup and Duration
	Warmup      time.Duration   // sent, not counted
	Duration    time.Duration   // counted (default 1 s)
	Timeout     time.Duration   // of a request (default 1 min)

	// Watch, if there is one, is told again and again how many requests have been
	// answered, the warm-up's too, and how long that took. It is not called any
	// more when Run returns.
	Watch func(answered int, since time.Duration)

	dial  dialer              // tests: not to Address
	sleep func(time.Duration) // tests: by another clock
}

type dialer func(ctx context.Context) (net.Conn, error)

func (o *Options) setDefaults() error {
	if len(o.Requests) == 0 {
		return errors.New("there are no requests to send")
	}
	if o.Times != nil && len(o.Times) != len(o.Requests) {
		return fmt.Errorf("%d times are given for %d requests", len(o.Times), len(o.Requests))
	}
	o.Connections = max(o.Connections, 1)
	if o.Duration <= 0 {
		o.Duration = time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.Times != nil {
		o.Warmup, o.Duration = 0, o.Times[len(o.Times)-1]-o.Times[0]+1
	}
	if o.dial == nil {
		o.dial = func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: o.Timeout}).DialContext(ctx, "tcp", o.Address)
		}
	}
	if o.sleep == nil {
		o.sleep = pause
	}
	return nil
}

// String says which load it is.
func (o Options) String() string {
	switch {
	case o.Times != nil:
		return fmt.Sprintf("%d recorded requests", len(o.Times))
	case o.Rate > 0:
		return fmt.Sprintf("open loop, %.0f/s", o.Rate)
	}
	return fmt.Sprintf("closed loop, %d connections", o.Connections)
}

// Result is what Run measured.
type Result struct {
	Latency  Histogram     // of answered requests; of an open loop from when they were due
	Late     Histogram     // open loop: how late the generator itself sent what an idle connection waited for
	Sent     int           // all requests, the warm-up's too
	Failures int           // requests without an answer, or with another than 200
	Failure  error         // one of them
	Elapsed  time.Duration // from the first counted request to the last answer
	Stages   *Stages       // what the server says that its answers' parts took
	Width    time.Duration // of a stretch
	Series   []Stretch     // answered requests by when they were due
}

// Rate is answered requests a second.
func (r Result) Rate() float64 { return float64(r.Latency.Count()) / r.Elapsed.Seconds() }

// Run sends requests until the time is over or ctx ends; the latter is an
// error. Failed requests are counted, and sent no more than others.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.setDefaults(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	begin := start.Add(o.Warmup)
	pace, stages := o.pace(start, begin.Add(o.Duration)), newStages()
	var answered atomic.Int64
	unwatch := o.watched(&answered, start)
	workers := make([]*worker, o.Connections)
	var running sync.WaitGroup
	for i := range workers {
		w := newWorker(&o, begin, pace(i), stages, &answered)
		workers[i] = w
		running.Go(func() { w.work(ctx) })
	}
	running.Wait()
	unwatch()
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("the load was cut short: %w", err)
	}
	r := merge(workers, begin)
	r.Stages = stages
	return r, nil
}

const watchEvery = 200 * time.Millisecond

// watched starts the watching, and returns what ends it.
func (o *Options) watched(answered *atomic.Int64, start time.Time) (end func()) {
	if o.Watch == nil {
		return func() {}
	}
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				o.Watch(int(answered.Load()), time.Since(start))
			}
		}
	})
	return func() { close(done); watching.Wait() }
}

// pace returns that of each worker.
func (o *Options) pace(start, end time.Time) func(worker int) pace {
	var gap func(int) time.Duration
	switch {
	case o.Times != nil:
		gap = recorded(o.Times)
	case o.Rate > 0:
		gap = poisson(o.Rate, o.Seed)
	default:
		return func(worker int) pace { return closedLoop(worker, o.Connections) }
	}
	all := newArrivals(start, end, gap, o.sleep)
	return func(int) pace { return all.take }
}

func merge(workers []*worker, begin time.Time) Result {
	r := Result{Latency: NewHistogram(), Late: NewHistogram()}
	last, all := begin, workers[0].series
	for i, w := range workers {
		if i > 0 {
			all.merge(w.series)
		}
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
	r.Elapsed, r.Width, r.Series = last.Sub(begin), all.width, all.parts
	return r
}
