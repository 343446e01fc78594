package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"sluice/gpu/cuda/wire"
	"sluice/kernels/ref"
)

// ErrNotHeld is returned while rows are not on their device: not yet, not any
// more, or never, as there is no room.
var ErrNotHeld = errors.New("the rows are not on a GPU")

// Rows are vectors on a device, as IEEE halves. A goroutine keeps them there.
type Rows struct {
	worker  *worker
	vectors []float32
	dims    int
	width   int    // of a row on the device, zeros after dims
	number  uint32 // of the memory
	longest float64
	masks   []mask // on the device, the last used first

	closing context.Context
	close   context.CancelFunc
	unread  chan struct{}           // closed when the vectors are read no more
	batcher atomic.Pointer[batcher] // nil: the rows are not on the device
}

// mask is a bitmap on the device.
type mask struct {
	key    Mask
	number uint32
}

const (
	widthUnit = 8   // numbers in 16 bytes
	mostMasks = 128 // on the device, of the same rows; more than the queries of a batch
)

func holdRows(w *worker, vectors []float32, dims int) *Rows {
	r := &Rows{
		worker: w, vectors: vectors, dims: dims, width: (dims + widthUnit - 1) / widthUnit * widthUnit, number: w.number(),
		unread: make(chan struct{}),
	}
	r.closing, r.close = context.WithCancel(w.closing)
	go r.keep()
	return r
}

// Close gives the device's memory back.
func (r *Rows) Close() {
	r.close()
	<-r.unread
}

// Ended is closed when the rows will not be on a device any more: after Close, or
// where there is no room.
func (r *Rows) Ended() <-chan struct{} { return r.closing.Done() }

func (r *Rows) count() int { return len(r.vectors) / r.dims }

// keep has the rows on the device until Close, or there is no room for them.
func (r *Rows) keep() {
	defer r.close()
	err := r.measure()
	for err == nil {
		l, renewed := r.worker.present()
		if err = r.upload(l); err == nil {
			r.serve(l)
		}
		if l.reason() != nil {
			err = r.await(renewed)
		}
	}
	close(r.unread)
	if r.closing.Err() == nil {
		r.worker.log.Warn("rows of an index are not on the GPU, and the CPU searches them", "rows", r.count(), "why", err)
	}
	l, _ := r.worker.present()
	for _, m := range append(r.masks, mask{number: r.number}) {
		l.drop(m.number)
	}
}

// await waits for another life.
func (r *Rows) await(renewed <-chan struct{}) error {
	select {
	case <-renewed:
		return nil
	case <-r.closing.Done():
		return r.closing.Err()
	}
}

// measure finds the longest row, by which errors are bounded.
func (r *Rows) measure() error {
	for at := 0; at < len(r.vectors); at += r.dims {
		if at%(r.dims<<12) == 0 && r.closing.Err() != nil {
			return r.closing.Err()
		}
		length, ok := lengthOf(r.vectors[at : at+r.dims])
		if !ok {
			return fmt.Errorf("row %d has numbers beyond those of 16 bits", at/r.dims)
		}
		r.longest = max(r.longest, length)
	}
	return nil
}

// lengthOf is the Euclidean length; false if a number is no half.
func lengthOf(v []float32) (length float64, ok bool) {
	var squares, largest float64
	for _, x := range v {
		squares += float64(x) * float64(x)
		largest = max(largest, math.Abs(float64(x)))
	}
	return math.Sqrt(squares), largest <= ref.MaxF16 // false for NaN
}

// slack bounds how far the device's product of a row and a query of that length
// is from their product in float32. Each number is rounded to 11 bits, or to a
// multiple of 2⁻²⁴; and of sums each step is off by less than 2⁻²² of the
// largest, on the device and here.
func (r *Rows) slack(length float64) float32 {
	relative := 0x1.01p-10 + float64(r.width)*0x1p-21
	absolute := 0x1p-24 * math.Sqrt(float64(r.dims)) * (length + r.longest + 1)
	return float32(relative*length*r.longest + absolute)
}

// upload copies the rows as halves.
func (r *Rows) upload(l *life) error {
	rowBytes := 2 * r.width
	return l.hold(r.closing, r.number, r.count()*rowBytes, rowBytes, func(dst []byte, from, to int) []byte {
		for row := from / rowBytes; row*rowBytes < to; row++ {
			dst = appendHalves(dst, r.vectors[row*r.dims:(row+1)*r.dims], r.width)
		}
		return dst
	})
}

// appendHalves appends width halves: v and zeros.
func appendHalves(dst []byte, v []float32, width int) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint16(dst, ref.F16(x))
	}
	return append(dst, make([]byte, 2*(width-len(v)))...)
}

// serve answers questions until the life ends, or the rows are closed.
func (r *Rows) serve(l *life) {
	b := &batcher{asked: make(chan *question), over: make(chan struct{})}
	r.masks = r.masks[:0]
	r.batcher.Store(b)
	defer r.batcher.Store(nil)
	defer close(b.over)
	for {
		select {
		case q := <-b.asked:
			r.answer(l, b.gather(q))
		case <-l.ended:
			return
		case <-r.closing.Done():
			return
		}
	}
}

// answer runs questions as one search.
func (r *Rows) answer(l *life, questions []*question) {
	s, err := r.ask(l, questions)
	found := wire.Found{Rows: make([]int32, s.K*len(questions)), Products: make([]float32, s.K*len(questions))}
	if err == nil {
		err = l.search(r.closing, s, found)
	}
	for i, q := range questions {
		if err == nil {
			q.take(found.Rows[i*s.K:][:q.k], found.Products[i*s.K:])
		}
		q.done <- err
	}
}

// ask is the search of questions, whose bitmaps are on the device then.
func (r *Rows) ask(l *life, questions []*question) (wire.Search, error) {
	s := wire.Search{Number: r.number, Rows: r.count(), Width: r.width}
	for _, q := range questions {
		number, err := r.mask(l, q.mask)
		if err != nil {
			return s, err
		}
		s.K = max(s.K, q.k)
		s.Bitmaps, s.Queries = append(s.Bitmaps, number), append(s.Queries, q.halves...)
	}
	return s, nil
}

// mask is the number of a bitmap, which is copied to the device if need be.
func (r *Rows) mask(l *life, key Mask) (uint32, error) {
	at := slices.IndexFunc(r.masks, func(m mask) bool { return m.key == key })
	if at < 0 {
		m := mask{key, r.worker.number()}
		if err := r.holdMask(l, m); err != nil {
			return 0, err
		}
		if at = len(r.masks); at == mostMasks {
			at--
			l.drop(r.masks[at].number)
			r.masks = r.masks[:at]
		}
		r.masks = append(r.masks, m)
	}
	m := r.masks[at]
	copy(r.masks[1:at+1], r.masks[:at])
	r.masks[0] = m
	return m.number, nil
}

func (r *Rows) holdMask(l *life, m mask) error {
	words := m.key.Words()
	if len(words) != (r.count()+63)/64 {
		return fmt.Errorf("a bitmap of %d words for %d rows", len(words), r.count())
	}
	return l.hold(r.closing, m.number, 8*len(words), 8, func(dst []byte, from, to int) []byte {
		for _, w := range words[from/8 : to/8] {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
		return dst
	})
}
