package milvus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"sluice/index"
)

const (
	connectTimeout = time.Minute      // with the check
	callTimeout    = 30 * time.Second // of one call, where the caller has no earlier deadline
	retryAfter     = 50 * time.Millisecond
	rowsPerCall    = 4096 // named in one expression
)

// Cluster is one Milvus server, or several that answer as one. Its methods are
// safe for concurrent use.
type Cluster struct {
	address  string
	version  version
	breaker  breaker
	perCall  int           // rows named in one expression
	patience time.Duration // with a daemon that is to write rows
	// Two connections: a search waits until what was written on its own is
	// visible to it. Inserts are, deletions need not be.
	searching, deleting client.Client
}

// Connect connects to the server at host:port and checks, in a collection made
// for that, that it answers as Milvus does. One that does not is an error that
// says what it did.
func Connect(ctx context.Context, address string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c := &Cluster{address: address, perCall: rowsPerCall, patience: awaitMost}
	for _, connection := range []*client.Client{&c.searching, &c.deleting} {
		var err error
		if *connection, err = client.NewClient(ctx, configuration(address)); err != nil {
			return nil, errors.Join(fmt.Errorf("connecting to Milvus at %s: %w", address, unavailable(ctx, err)), c.Close())
		}
	}
	if err := c.introduce(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the Milvus server at %s: %w", address, err), c.Close())
	}
	return c, nil
}

// configuration leaves retries to us: the library's would send inserts twice.
func configuration(address string) client.Config {
	return client.Config{
		Address: address,
		DialOptions: []grpc.DialOption{
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
				MinConnectTimeout: 3 * time.Second,
			}),
			grpc.WithDefaultCallOptions(grpc_retry.Disable(), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		},
		RetryRateLimit: &client.RetryRateLimitOption{},
	}
}

// introduce asks the server what it is and whether it does as it should.
func (c *Cluster) introduce(ctx context.Context) error {
	told, err := c.searching.GetVersion(ctx)
	if err != nil {
		return fmt.Errorf("asking for its version: %w", unavailable(ctx, err))
	}
	if c.version, err = parseVersion(told); err != nil {
		return err
	}
	if c.version.before(2, 3) {
		return fmt.Errorf("version %s is too old; use 2.3 or newer", told)
	}
	return c.check(ctx)
}

// Close ends the connections.
func (c *Cluster) Close() error {
	var errs []error
	for _, connection := range []client.Client{c.searching, c.deleting} {
		if connection != nil {
			errs = append(errs, connection.Close())
		}
	}
	return errors.Join(errs...)
}

// Version is what the server says of itself: major.minor.
func (c *Cluster) Version() string { return fmt.Sprintf("%d.%d", c.version[0], c.version[1]) }

// Ready reports why searches of the cluster fail at present, or nil.
func (c *Cluster) Ready() error {
	if err := c.breaker.failing(); err != nil {
		return fmt.Errorf("the Milvus server at %s: %w", c.address, err)
	}
	return nil
}

// read makes a call that changes nothing, once more if the connection broke.
func (c *Cluster) read(ctx context.Context, call func(context.Context) error) error {
	err := c.call(ctx, call)
	if status.Code(err) != codes.Unavailable {
		return err
	}
	wait(ctx, retryAfter)
	return c.call(ctx, call)
}

// call makes a call unless the last ones all failed. Errors other than the
// context's own are index.ErrUnavailable.
func (c *Cluster) call(ctx context.Context, call func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.breaker.enter(); err != nil {
		return fmt.Errorf("the Milvus server at %s: %w: %w", c.address, index.ErrUnavailable, err)
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := call(limited)
	if err != nil && ctx.Err() != nil {
		c.breaker.abandon()
		return ctx.Err() // the server is not to blame
	}
	c.breaker.leave(err)
	if err != nil {
		return fmt.Errorf("the Milvus server at %s: %w", c.address, unavailable(ctx, err))
	}
	return nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("%w: %w", index.ErrUnavailable, err)
}

// version is major and minor.
type version [2]int

// parseVersion reads what servers say of themselves: v2.3.5-lite, 2.5.4.
func parseVersion(told string) (v version, err error) {
	parts := strings.SplitN(strings.TrimPrefix(told, "v"), ".", 3)
	for i := range v {
		if i >= len(parts) {
			return v, fmt.Errorf("it says that its version is %q; it is no Milvus that is known here", told)
		}
		if v[i], err = strconv.Atoi(parts[i]); err != nil {
			return v, fmt.Errorf("it says that its version is %q; it is no Milvus that is known here", told)
		}
	}
	return v, nil
}

func (v version) before(major, minor int) bool {
	return v[0] < major || v[0] == major && v[1] < minor
}
