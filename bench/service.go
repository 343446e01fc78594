package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"sluice/bench/load"
)

// Service is a running server, and what it is sent.
type Service struct {
	Name     string // first part of its figures' names
	Address  string
	Requests []load.Request
	PID      int                                                  // of its process on this machine; 0: what it uses is not known
	Watch    func(what string, answered int, since time.Duration) // see load.Options; nil: nobody watches
	Admin    string                                               // address of its administrators' listener; "": what it allocates is not known
}

// Call is a request in the making: a JSON body, and who asks.
type Call struct {
	Token string
	Path  string // "": that of the service
	Body  any
}

// NewService is one that takes calls at a URL.
func NewService(name, target string, pid int, calls []Call) (Service, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return Service{}, fmt.Errorf("%q: an address such as http://127.0.0.1:8080 is expected", target)
	}
	s := Service{Name: name, Address: u.Host, PID: pid}
	for _, call := range calls {
		body, err := json.Marshal(call.Body)
		if err != nil {
			return s, fmt.Errorf("a request for %s: %w", name, err)
		}
		to := *u
		to.Path = cmp.Or(call.Path, u.Path)
		r, err := load.Post(&to, call.Token, body)
		if err != nil {
			return s, err
		}
		s.Requests = append(s.Requests, r)
	}
	return s, nil
}

// served is one turn of a service.
type served struct {
	load.Result
	usage     load.Usage // what the turn took, and the memory at its end
	allocated load.Allocations
}

// run puts a load on the service. A failed request is an error: the times of
// the others would mean nothing.
func (s Service) run(ctx context.Context, o load.Options) (served, error) {
	t, err := s.strain(ctx, o)
	if err == nil && t.Failures > 0 {
		err = fmt.Errorf("%s failed %d of %d requests: %w", s.Name, t.Failures, t.Failures+t.Latency.Count(), t.Failure)
	}
	return t, err
}

// strain puts a load on the service that it may be unable to bear.
func (s Service) strain(ctx context.Context, o load.Options) (t served, err error) {
	o.Address, o.Requests = s.Address, s.Requests
	if s.Watch != nil {
		o.Watch = func(answered int, since time.Duration) { s.Watch(s.Name+", "+o.String(), answered, since) }
	}
	before, err := s.usage()
	if err != nil {
		return t, err
	}
	allocated, err := s.allocations(ctx)
	if err != nil {
		return t, err
	}
	if t.Result, err = load.Run(ctx, o); err != nil {
		return t, err
	}
	if t.Failures == 0 && t.Latency.Count() == 0 {
		return t, fmt.Errorf("%s answered nothing that was sent within %v: the turns are too short for it", s.Name, o.Duration)
	}
	if t.usage, err = s.usage(); err != nil {
		return t, err
	}
	t.usage.CPU -= before.CPU
	after, err := s.allocations(ctx)
	t.allocated = after.Less(allocated)
	return t, err
}

func (s Service) allocations(ctx context.Context) (load.Allocations, error) {
	if s.Admin == "" {
		return load.Allocations{}, nil
	}
	return load.AllocationsOf(ctx, s.Admin)
}

func (s Service) usage() (load.Usage, error) {
	if s.PID == 0 {
		return load.Usage{}, nil
	}
	return load.UsageOf(s.PID)
}
