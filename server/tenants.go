package server

import (
	"context"
	"maps"
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

	mu      sync.Mutex
	known   map[string]*tenant
	sweepAt int // how many are too many
}

// fewTenants are known at the same time without a look at who may be forgotten.
const fewTenants = 1024

func newTenants(l config.Limits) *tenants {
	return &tenants{limits: l.Tenants, document: int(l.BodyBytes), now: time.Now, pause: pause, known: map[string]*tenant{}, sweepAt: fewTenants}
}

// tenant is what one of them has taken. Of nil nothing is limited.
type tenant struct {
	of       *tenants
	most     int64 // requests in flight; 0: no limit
	inFlight atomic.Int64
	searches *rate.Limiter // nil: no limit
	bytes    *rate.Limiter // nil: no limit
}

// enter counts a request of the tenant of that name, which leaves at its end. A
// tenant without limits is nil.
func (t *tenants) enter(name string) (*tenant, error) {
	if len(t.limits) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.known[name]
	if one == nil {
		if one = t.new(name); one == nil {
			return nil, nil
		}
		t.sweep()
		t.known[name] = one
	}
	return one, one.enter()
}

// sweep forgets those of whom nothing is left to know, when there are twice as
// many as it last left.
func (t *tenants) sweep() {
	if len(t.known) < t.sweepAt {
		return
	}
	now := t.now()
	maps.DeleteFunc(t.known, func(_ string, one *tenant) bool { return one.asNew(now) })
	t.sweepAt = max(fewTenants, 2*len(t.known))
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

// asNew reports that the tenant has taken nothing that is not given back.
func (t *tenant) asNew(now time.Time) bool {
	full := func(l *rate.Limiter) bool { return l == nil || l.TokensAt(now) >= float64(l.Burst()) }
	return t.inFlight.Load() == 0 && full(t.searches) && full(t.bytes)
}

func (t *tenant) enter() error {
	if t.inFlight.Add(1) > t.most && t.most > 0 {
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

// write takes the bytes of what is to be stored.
func (t *tenant) write(n int) error {
	if t == nil || t.bytes == nil {
		return nil
	}
	_, err := t.take(t.bytes, n, 0, "your tenant writes more bytes a second than it may (limits.tenants); send it again later")
	return err
}

// writeLine takes the bytes of one of many lines, and returns how long it takes
// until they may be written. Where that is longer than most nothing is taken.
func (t *tenant) writeLine(n int, most time.Duration) (time.Duration, error) {
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
