//go:build nvidia

package worker

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/cu"

	"sluice/gpu"
	"sluice/gpu/cuda/kernel"
	"sluice/gpu/cuda/wire"
)

// search is a request with the memory that it names.
type search struct {
	wire.Search
	rows    *memory
	bitmaps []*memory // by query
}

// borrow takes the memory of a request; giveBack returns it, all or none.
func (q *search) borrow(from *memories) (err error) {
	q.bitmaps = q.bitmaps[:0]
	if q.rows, err = from.borrow(q.Number); err != nil {
		return err
	}
	for _, number := range q.Bitmaps {
		bitmap, err := from.borrow(number)
		if err != nil {
			return errors.Join(err, q.giveBack(from))
		}
		q.bitmaps = append(q.bitmaps, bitmap)
	}
	return q.check()
}

func (q *search) giveBack(to *memories) error {
	if q.rows == nil {
		return nil
	}
	err := to.giveBack(append(q.bitmaps, q.rows)...)
	q.rows = nil
	return err
}

// words is the length of a bitmap, in words of 32 bits.
func (q *search) words() int { return (q.Rows + 31) / 32 }

// check refuses what would read past the memory's end.
func (q *search) check() error {
	if q.Rows*q.Width*2 > q.rows.bytes {
		return fmt.Errorf("%w: memory %d has no %d rows of %d", gpu.ErrInput, q.Number, q.Rows, q.Width)
	}
	for i, b := range q.bitmaps {
		if 4*q.words() > b.bytes {
			return fmt.Errorf("%w: memory %d has no bitmap of %d rows", gpu.ErrInput, q.Bitmaps[i], q.Rows)
		}
	}
	return nil
}

// searchPlan is where parts of a search lie in a slot's memory: what comes first
// is mirrored on the host.
type searchPlan struct {
	queries, inputs         int
	rows, products, outputs int
	candidates, bitmaps     int
	device                  int
	shared                  bool // one bitmap for all queries: it is used where it is
}

func (s *Slot) planSearch(q *search, count int) (p searchPlan) {
	var c carver
	p.queries = c.take(2 * count * q.Width)
	p.inputs = c.at
	p.rows, p.products = c.take(4*count*q.K), c.take(4*count*q.K)
	p.outputs = c.at
	p.candidates = c.take(s.kernels.CandidateBytes(count, q.K))
	p.bitmaps = c.at
	p.shared = !slices.ContainsFunc(q.bitmaps, func(b *memory) bool { return b != q.bitmaps[0] })
	if !p.shared {
		c.take(4 * count * q.words())
	}
	p.device = c.at
	return p
}

// search answers a request; the answer is the slot's until its next.
// Queries that the device has no memory for run in halves. Errors are as of Run.
func (s *Slot) search(q *search) (wire.Found, error) {
	s.found.Rows, s.found.Products = s.found.Rows[:0], s.found.Products[:0]
	if q.K > kernel.MostResults {
		return s.found, fmt.Errorf("%w: a search for %d rows: up to %d are possible", gpu.ErrInput, q.K, kernel.MostResults)
	}
	err := halves(0, len(q.bitmaps), func(from, to int) error {
		part := *q
		part.bitmaps, part.Queries = q.bitmaps[from:to], q.Queries[2*from*q.Width:2*to*q.Width]
		return s.trySearch(&part)
	})
	return s.found, err
}

func (s *Slot) trySearch(q *search) error {
	count := len(q.bitmaps)
	p := s.planSearch(q, count)
	if err := s.reserve(p.device, p.outputs); err != nil {
		return fmt.Errorf("%w: a search of %d queries", err, count)
	}
	copy(s.host.Bytes()[p.queries:], q.Queries)
	if err := cu.MemcpyHtoDAsync(s.memory, s.host.Pointer(), int64(p.inputs), s.stream); err != nil {
		return err
	}
	allowed, err := s.gather(q, p)
	if err != nil {
		return err
	}
	answer := kernel.Answer{Rows: s.at(p.rows), Scores: s.at(p.products), Candidates: s.at(p.candidates), K: q.K}
	rows := kernel.Vectors{Data: q.rows.pointer, Count: q.Rows, Width: q.Width}
	queries := kernel.Vectors{Data: s.at(p.queries), Count: count, Width: q.Width}
	if err := s.kernels.Search(s.stream, answer, rows, queries, allowed); err != nil {
		return err
	}
	if err := s.copyOut(s.at(p.inputs), p.inputs, p.outputs-p.inputs); err != nil {
		return err
	}
	if err := s.stream.Synchronize(); err != nil {
		return err
	}
	s.found.Rows = append(s.found.Rows, view[int32](s, p.rows, count*q.K)...)
	s.found.Products = append(s.found.Products, view[float32](s, p.products, count*q.K)...)
	return nil
}

// gather puts the queries' bitmaps one after the other, as the kernel reads them.
func (s *Slot) gather(q *search, p searchPlan) (kernel.Allowed, error) {
	if p.shared {
		return kernel.Allowed{Bits: q.bitmaps[0].pointer}, nil
	}
	size := 4 * q.words()
	for i, b := range q.bitmaps {
		if err := cu.MemcpyDtoDAsync(s.at(p.bitmaps+i*size), b.pointer, int64(size), s.stream); err != nil {
			return kernel.Allowed{}, err
		}
	}
	return kernel.Allowed{Bits: s.at(p.bitmaps), Words: q.words()}, nil
}
