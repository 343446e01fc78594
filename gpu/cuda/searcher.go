package cuda

import (
	"sync/atomic"
)

// Searcher holds rows of vectors on GPUs, and searches them there.
type Searcher struct {
	workers []*worker
	next    atomic.Uint32
}

// Hold copies vectors, rows of dims numbers, to one of the devices in the
// background, again whenever its worker was started again. They are read until
// Close returns.
func (s *Searcher) Hold(vectors []float32, dims int) *Rows {
	w := s.workers[int(s.next.Add(1))%len(s.workers)]
	return holdRows(w, vectors, dims)
}
