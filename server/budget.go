package server

import (
	"bytes"
	"io"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// budget bounds the bytes that all requests under way hold together: bodies
// that have arrived, and answers that their clients have not taken yet.
type budget struct{ left atomic.Int64 }

func newBudget(size int64) *budget {
	b := &budget{}
	b.left.Store(size)
	return b
}

// take takes n bytes, or none where fewer are left. It never waits: who waits
// holds bytes that others wait for.
func (b *budget) take(n int) bool {
	if b.left.Add(-int64(n)) >= 0 {
		return true
	}
	b.give(n)
	return false
}

func (b *budget) give(n int) { b.left.Add(int64(n)) }

var errNoRoom = failf(fasthttp.StatusTooManyRequests, "the bodies and answers under way have reached limits.total_bytes; send it again later")

// take charges the request with n bytes until it is finished.
func (q *request) take(n int) error {
	if !q.s.budget.take(n) {
		q.s.metrics.rejected.Inc()
		return errNoRoom
	}
	q.taken += n
	return nil
}

// uncounted is how large an answer is part of a connection's own cost.
const uncounted = 64 << 10

// answer writes a body. While a large one waits for its client to take it, the
// request keeps its slot and its bytes.
func (q *request) answer(body []byte) error {
	if len(body) <= uncounted {
		q.http.Response.SetBodyRaw(body)
		return nil
	}
	if err := q.take(len(body)); err != nil {
		return err
	}
	q.stream(bytes.NewReader(body), len(body))
	return nil
}

// stream sends an answer that the request is charged with.
func (q *request) stream(body io.Reader, size int) {
	q.streams = true
	q.http.Response.SetBodyStream(largeAnswer{body, q}, size)
}

type largeAnswer struct {
	io.Reader
	q *request
}

// Close is called when the answer is written, or cannot be.
func (a largeAnswer) Close() error {
	a.q.finish()
	return nil
}
