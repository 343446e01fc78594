package server

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"sluice/gpu"
	"sluice/server/config"
)

// Budget bounds the bytes that all requests under way hold together: bodies
// that have arrived, answers that their clients have not taken yet, and what
// texts take while they are tokenized.
type Budget struct {
	size int64
	left atomic.Int64
}

// NewBudget makes one of limits.total_bytes.
func NewBudget(size config.Size) *Budget {
	b := &Budget{size: int64(size)}
	b.left.Store(b.size)
	return b
}

// Take implements tokenizer.Room.
func (b *Budget) Take(n, held int) error {
	if int64(held+n) > b.size {
		return failf(fasthttp.StatusRequestEntityTooLarge, "a text takes more memory than limits.total_bytes, %d bytes, while it is tokenized: it has few spaces, or too many tokens; send it in parts", b.size)
	}
	if !b.take(n) {
		return errNoRoomYet
	}
	return nil
}

// take takes n bytes, or none where fewer are left. It never waits: who waits
// holds bytes that others wait for.
func (b *Budget) take(n int) bool {
	if b.left.Add(-int64(n)) >= 0 {
		return true
	}
	b.Give(n)
	return false
}

// Give gives back what was taken.
func (b *Budget) Give(n int) { b.left.Add(int64(n)) }

var errNoRoom = failf(fasthttp.StatusTooManyRequests, "all requests under way have reached limits.total_bytes together; send it again later")

// errNoRoomYet is errNoRoom, and has jobs wait as a full queue does.
var errNoRoomYet = fmt.Errorf("%w: %w", gpu.ErrOverloaded, errNoRoom)

// take charges the request with n bytes until it is finished.
func (q *request) take(n int) error {
	if !q.s.budget.take(n) {
		q.s.metrics.rejected.Inc()
		return errNoRoom
	}
	q.taken += n
	return nil
}

// giveBack gives n bytes back before the request is finished.
func (q *request) giveBack(n int) {
	q.s.budget.Give(n)
	q.taken -= n
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
func (q *request) stream(body copied, size int) {
	q.streams = true
	q.http.Response.SetBodyStream(largeAnswer{body, q}, size)
}

// copied is what can go to a connection without a buffer between.
type copied interface {
	io.Reader
	io.WriterTo
}

type largeAnswer struct {
	copied
	q *request
}

// Close is called when the answer is written, or cannot be.
func (a largeAnswer) Close() error {
	a.q.finish()
	return nil
}
