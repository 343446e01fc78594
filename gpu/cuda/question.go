package cuda

import (
	"context"
	"fmt"
)

// Mask is a bit for each row, set where a query may see it. Masks can be
// compared, and equal ones have equal bits: the device keeps the last used.
//
// Mask and Near are aliases, so that Rows are what an index asks for
// (index/local.Held) and neither package imports the other.
type Mask = interface{ Words() []uint64 }

// Near is what a device found: rows, the best first, and their products with the
// query, which are within Slack of those in float32.
type Near = struct {
	Rows     []uint32
	Products []float32
	Slack    float32
}

// mostRows is how many a search finds at most: as many as the kernel does.
const mostRows = 120

// Most is how many rows a search finds at most.
func (r *Rows) Most() int { return mostRows }

// question is a search of one query.
type question struct {
	halves []byte // of the query
	mask   Mask
	k      int
	near   Near
	done   chan error // takes one
}

// Search finds the k rows of greatest product with the query among those of the
// mask. Questions that come while another is answered are asked together.
// ErrNotHeld, or an error that wraps ErrWorker: another time, perhaps.
func (r *Rows) Search(ctx context.Context, query []float32, mask Mask, k int) (Near, error) {
	length, ok := lengthOf(query)
	if !ok || len(query) != r.dims || k < 1 || k > mostRows {
		return Near{}, fmt.Errorf("a search for %d rows by a query of %d numbers, of length %g, is not for a GPU", k, len(query), length)
	}
	b := r.batcher.Load()
	if b == nil {
		return Near{}, ErrNotHeld
	}
	q := &question{halves: appendHalves(nil, query, r.width), mask: mask, k: k, near: Near{Slack: r.slack(length)}, done: make(chan error, 1)}
	select {
	case b.asked <- q:
	case <-b.over:
		return Near{}, ErrNotHeld
	case <-ctx.Done():
		return Near{}, ctx.Err()
	}
	select {
	case err := <-q.done:
		return q.near, err
	case <-ctx.Done():
		return Near{}, ctx.Err()
	}
}

// take keeps what was found up to the first row that is none.
func (q *question) take(rows []int32, products []float32) {
	for i, row := range rows {
		if row < 0 {
			break
		}
		q.near.Rows = append(q.near.Rows, uint32(row))
		q.near.Products = append(q.near.Products, products[i])
	}
}
