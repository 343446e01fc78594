package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// arrivals is a Poisson process: the times at which requests are due.
type arrivals struct {
	gap    float64 // mean, in seconds
	end    time.Time
	mu     sync.Mutex
	random *rand.Rand
	next   time.Time
}

func newArrivals(start, end time.Time, rate float64, seed uint64) *arrivals {
	return &arrivals{gap: 1 / rate, end: end, random: rand.New(rand.NewPCG(seed, 0)), next: start}
}

// longestPause is how long the end of a context may go unnoticed.
const longestPause = 10 * time.Millisecond

// take waits until the next request is due, and returns that time. One caller
// waits for the clock and the others for their turn: however many are idle,
// there is one timer. waited is false when the request was overdue: nobody was
// free before. What is due after the end is not waited for.
func (a *arrivals) take(ctx context.Context) (due time.Time, waited bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	due = a.next
	a.next = due.Add(time.Duration(a.random.ExpFloat64() * a.gap * float64(time.Second)))
	if due.After(a.end) {
		return due, false
	}
	for left := time.Until(due); left > 0 && ctx.Err() == nil; left = time.Until(due) {
		pause(min(left, longestPause))
		waited = true
	}
	return due, waited
}
