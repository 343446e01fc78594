package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// maxAnswer bounds a body that is read.
const maxAnswer = 256 << 20

// conn is one connection, with one request under way at most. It is dialled
// when it is needed.
type conn struct {
	dial     dialer
	timeout  time.Duration
	socket   net.Conn    // nil: none
	release  func() bool // ends ctx's hold on it
	reader   *bufio.Reader
	response fasthttp.Response
}

func newConn(dial dialer, timeout time.Duration) *conn {
	return &conn{dial: dial, timeout: timeout, reader: bufio.NewReaderSize(nil, 16<<10)}
}

// do sends a request and reads the whole answer. A connection that failed is
// replaced with the next request.
func (c *conn) do(ctx context.Context, r Request) error {
	err := c.exchange(ctx, r)
	if err != nil || c.response.ConnectionClose() {
		err = errors.Join(err, c.Close())
	}
	if err == nil && c.response.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("status %d: %.200s", c.response.StatusCode(), c.response.Body())
	}
	return err
}

func (c *conn) exchange(ctx context.Context, r Request) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := c.socket.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	if _, err := c.socket.Write(r); err != nil {
		return err
	}
	return c.response.ReadLimitBody(c.reader, maxAnswer)
}

// open dials. The end of ctx closes the connection, whatever it waits for.
func (c *conn) open(ctx context.Context) error {
	if c.socket != nil {
		return nil
	}
	socket, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.socket, c.release = socket, context.AfterFunc(ctx, func() { _ = socket.Close() })
	c.reader.Reset(socket)
	return nil
}

// Close may be called again.
func (c *conn) Close() error {
	if c.socket == nil {
		return nil
	}
	c.release()
	err := c.socket.Close()
	c.socket = nil
	return err
}
