package load

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Idle is connections that wait, each after its first request.
type Idle []io.Closer

// OpenIdle opens so many connections, and sends one request over each. On an
// error it closes them.
func OpenIdle(ctx context.Context, o Options, n int) (idle Idle, err error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	for i := range n {
		c := newConn(o.dial, o.Timeout)
		idle = append(idle, c)
		if err := c.do(ctx, o.Requests[i%len(o.Requests)]); err != nil {
			return nil, errors.Join(fmt.Errorf("connection %d of %d: %w", i+1, n, err), idle.Close())
		}
		c.reader = nil
	}
	return idle, nil
}

// Close closes them all.
func (idle Idle) Close() (err error) {
	for _, c := range idle {
		err = errors.Join(err, c.Close())
	}
	return err
}
