package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"sluice/server/config"
)

// tenants bounds what each tenant takes, so that one at its limits leaves the
// others what is theirs.
type tenants struct {
	limits   map[string]config.TenantLimits
	document int // bytes of the largest, which fits any limit of ingestion
	now      func() time.Time
	pause    func(context.Context, time.Duration)

	mu    sync.Mutex
	known map[string]*tenant
}

func newTenants(l config.Limits) *tenants {
	return &tenants{limits: l.Tenants, document: int(l.BodyBytes), now: time.Now, pause: pause, known: map[string]*tenant{}}
}

// tenant is what one of them has taken. Of nil nothing is limited.
type tenant struct {
	of       *tenants
	most     int64 // requests in flight; 0: no limit
	inFlight atomic.Int64
	searches *rate.Limiter // nil: no limit
	bytes    *rate.Limiter // nil: no limit
}

// named returns the tenant of that name, nil where it has no limits.
func (t *tenants) named(name string) *tenant {
	if len(t.limits) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.known[name]
	if !known {
		one = t.new(name)
		t.known[name] = one // the identity provider names few
	}
	return one
}

func (t *tenants) new(name string) *tenant {
	limits, own := t.limits[name]
	if !own {
		if limits, own = t.limits["*"]; !own {
			return nil
		}
	}
	one := &tenant{of: t, most: int64(limits.ConcurrentRequests)}
	if r := limits.SearchesPerSecond; r > 0 {
		one.searches = rate.NewLimiter(rate.Limit(r), max(1, int(r)))
	}
	if r := limits.IngestBytesPerSecond; r > 0 {
		one.bytes = rate.NewLimiter(rate.Limit(r), max(int(r), t.document))
	}
	return one
}

// enter counts a request, which leaves at its end.
func (t *tenant) enter() error {
	if t != nil && t.inFlight.Add(1) > t.most && t.most > 0 {
		t.leave()
		return failf(fasthttp.StatusTooManyRequests, "your tenant has as many requests under way as it may (limits.tenants); send it again later")
	}
	return nil
}

func (t *tenant) leave() {
	if t != nil {
		t.inFlight.Add(-1)
	}
}

// search takes one of the searches of a second.
func (t *tenant) search() error {
	if t == nil || t.searches == nil {
		return nil
	}
	_, err := t.take(t.searches, 1, 0, "your tenant searches more often than it may (limits.tenants); send it again later")
	return err
}

// ingest takes the bytes of a document.
func (t *tenant) ingest(n int) error {
	if t == nil || t.bytes == nil {
		return nil
	}
	_, err := t.take(t.bytes, n, 0, "your tenant writes more bytes a second than it may (limits.tenants); send it again later")
	return err
}

// ingested takes the bytes of a document of many, and returns how long it takes
// until they may be written. Where that is longer than most nothing is taken.
func (t *tenant) ingested(n int, most time.Duration) (time.Duration, error) {
	if t == nil || t.bytes == nil {
		return 0, nil
	}
	return t.take(t.bytes, n, most, "your tenant writes more bytes a second than it may (limits.tenants); send the lines from this one on again later")
}

// take takes n of a limiter that are there within most, or says when they will be.
func (t *tenant) take(from *rate.Limiter, n int, most time.Duration, refusal string) (time.Duration, error) {
	now := t.of.now()
	reserved := from.ReserveN(now, n)
	wait := reserved.DelayFrom(now)
	if wait <= most {
		return wait, nil
	}
	reserved.CancelAt(now)
	f := failf(fasthttp.StatusTooManyRequests, "%s", refusal)
	f.retry = wait
	return 0, f
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
