package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// arrival is one request's turn.
type arrival struct {
	due    time.Time
	number int  // which request, from 0
	waited bool // somebody was free before it was due
}

// arrivals is the times at which requests of an open loop are due.
type arrivals struct {
	turn  chan struct{} // holds one: whoever has it waits for the clock
	sleep func(time.Duration)
	gap   func(number int) time.Duration // from an arrival to the one after
	end   time.Time
	next  arrival
}

func newArrivals(start, end time.Time, gap func(int) time.Duration, sleep func(time.Duration)) *arrivals {
	a := &arrivals{turn: make(chan struct{}, 1), sleep: sleep, gap: gap, end: end, next: arrival{due: start}}
	a.turn <- struct{}{}
	return a
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

// Lateness is how late this machine wakes who waits for Poisson arrivals and does
// nothing else: what no generator can be better than.
func Lateness(ctx context.Context, rate float64, seed uint64, d time.Duration) Histogram {
	late, start := NewHistogram(), time.Now()
	end := start.Add(d)
	for all := newArrivals(start, end, poisson(rate, seed), pause); ctx.Err() == nil; {
		a := all.take(ctx)
		if !a.due.Before(end) {
			break
		}
		if a.waited {
			late.Record(time.Since(a.due))
		}
	}
	return late
}

// longestPause is how long the end of a context may go unnoticed.
const longestPause = 10 * time.Millisecond

// take waits until the next request is due. One caller waits for the clock and
// the others for their turn: however many are idle, there is one timer. Nobody
// waits for what is overdue, because nobody was free before, or due after the end.
func (a *arrivals) take(ctx context.Context) arrival {
	<-a.turn
	defer func() { a.turn <- struct{}{} }()
	now := a.next
	a.next = arrival{due: now.due.Add(a.gap(now.number)), number: now.number + 1}
	if now.due.After(a.end) {
		return now
	}
	for left := time.Until(now.due); left > 0 && ctx.Err() == nil; left = time.Until(now.due) {
		a.sleep(min(left, longestPause))
		now.waited = true
	}
	return now
}
