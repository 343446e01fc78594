package bench

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"sluice/client"
)

const (
	fillRetries = 6                // without anything written
	fillWait    = time.Second      // before the first; each next is twice as long
	longestWait = 10 * time.Second // as the client waits
)

// fill writes passages, named by their numbers, until the daemon has them all. write
// returns those that are left and why: one that gets too little of the machine
// refuses some, which may come again.
func fill(ctx context.Context, numbers []int, write func(numbers []int) (left []int, err error)) error {
	for try := 0; ; try++ {
		left, err := write(numbers)
		if len(left) < len(numbers) {
			try = 0
		}
		if err == nil || try == fillRetries || !passing(err) {
			return err
		}
		if err := sleep(ctx, patience(err, try)); err != nil {
			return err
		}
		numbers = left
	}
}

// passing reports that a daemon refused what it may take later.
func passing(err error) bool {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusGatewayTimeout
	}
	return errors.Is(err, client.ErrIncomplete)
}

// patience is the time that the daemon asks for, else a longer one with every try.
func patience(err error, try int) time.Duration {
	var p *client.Problem
	var asked time.Duration
	if errors.As(err, &p) {
		asked = p.RetryAfter
	}
	return min(cmp.Or(asked, fillWait<<try), longestWait)
}
