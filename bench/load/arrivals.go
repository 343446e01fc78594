package load

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// arrival is one request's turn.
type arrival struct {
	due    time.Time
	number int // which request, from 0
}

// arrivals is the times at which requests of an open loop are due.
type arrivals struct {
	sleep func(time.Duration)
	gap   func(number int) time.Duration // from an arrival to the one after
	end   time.Time
	next  arrival
}

func newArrivals(start, end time.Time, gap func(int) time.Duration, sleep func(time.Duration)) *arrivals {
	return &arrivals{sleep: sleep, gap: gap, end: end, next: arrival{due: start}}
}

// poisson is the gaps of a Poisson process: exponential, with a mean of one over
// the rate.
func poisson(rate float64, seed uint64) func(int) time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(int) time.Duration { return time.Duration(random.ExpFloat64() / rate * float64(time.Second)) }
}

// recorded is the gaps of requests that were at these times, ascending.
func recorded(times []time.Duration) func(int) time.Duration {
	return func(number int) time.Duration {
		if number+1 >= len(times) {
			return time.Hour // after the end
		}
		return times[number+1] - times[number]
	}
}

// Lateness is how late a thread of this machine notices Poisson arrivals that does
// nothing but wait for them, as a generator does or, looking, with its eyes on the
// clock all the time: what no generator can be better than.
func Lateness(ctx context.Context, rate float64, seed uint64, d time.Duration, looking bool) Histogram {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wait := pause
	if looking {
		wait = look
	}
	late, start := NewHistogram(), time.Now()
	end := start.Add(d)
	for all := newArrivals(start, end, poisson(rate, seed), wait); ctx.Err() == nil; {
		a := all.take(ctx)
		if !a.due.Before(end) {
			break
		}
		late.Record(time.Since(a.due))
	}
	return late
}

// look waits without sleeping.
func look(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
	}
}

// longestPause is how long the end of a context may go unnoticed.
const longestPause = 10 * time.Millisecond

// take waits until the next request is due: not for what is overdue, or due after
// the end.
func (a *arrivals) take(ctx context.Context) arrival {
	now := a.next
	a.next = arrival{due: now.due.Add(a.gap(now.number)), number: now.number + 1}
	if now.due.After(a.end) {
		return now
	}
	for left := time.Until(now.due); left > 0 && ctx.Err() == nil; left = time.Until(now.due) {
		a.sleep(min(left, longestPause))
	}
	return now
}
