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
	err := c.open(ctx)
	if err == nil {
		c.send(r)
		err = c.read()
	}
	return c.settle(err)
}

// send writes a request. Where that fails, so does the read of the answer.
func (c *conn) send(r Request) {
	if c.socket == nil {
		return
	}
	err := c.socket.SetDeadline(time.Now().Add(c.timeout))
	if err == nil {
		_, err = c.socket.Write(r)
	}
	if err != nil {
		_ = c.socket.Close()
	}
}

// read waits for the whole answer.
func (c *conn) read() error { return c.response.ReadLimitBody(c.reader, maxAnswer) }

// settle closes a connection that is of no more use, and makes an error of an
// answer other than 200.
func (c *conn) settle(err error) error {
	if err != nil || c.response.ConnectionClose() {
		err = errors.Join(err, c.Close())
	}
	if err == nil && c.response.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("status %d: %.200s", c.response.StatusCode(), c.response.Body())
	}
	return err
}

// open dials, unless there is a connection: that may wait again for as long as
// it likes. The end of ctx closes it, whatever it waits for.
func (c *conn) open(ctx context.Context) error {
	if c.socket != nil {
		return c.socket.SetDeadline(time.Time{})
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
