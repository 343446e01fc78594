package simd

import (
	"math"
	"unsafe"
)

// queryRows is how many rows of scores stay in cache.
const queryRows = maxStripRows

// Head is one attention head of one sequence: rows [From, To) of query, key
// and value, of Size numbers each from Column, and Hidden apart.
type Head struct {
	From, To             int
	Column, Size, Hidden int
	// Window is how far from its query a key is seen, either way; 0: everywhere.
	Window int
	// Distances, if there are any, are added to the unscaled scores by the
	// distance of the key from the query, that of 0 being number Zero. There are
	// panelColumns − 1 more than the longest sequence has distances.
	Distances []float32
	Zero      int
}

// seen is the keys that queries [from, to) see. It begins where a product over
// all keys takes up a new unit of depth, so that sums have the same order
// whichever queries stand together.
func (h *Head) seen(from, to int) (first, last int) {
	if h.Window == 0 {
		return h.From, h.To
	}
	first = max(0, from-h.Window-h.From)
	return h.From + first/panelColumns*panelColumns, min(h.To, to+h.Window)
}

// AttentionScratch is the memory that one goroutine needs for attention.
type AttentionScratch struct {
	keys, values []byte // panels
	scores, p    []byte // queryRows rows, one number per key
	inverse      [queryRows]float32
	products     Scratch
	pack         packArgs
	exponentials exponentialArgs
}

// Attend computes softmax(q·kᵀ/√size)·v for queries [from, to) of h, into rows
// of out, h.Hidden apart.
func (s *Set) Attend(out []float32, qkv *Rows, h *Head, from, to int, scratch *AttentionScratch) {
	if from < to {
		out = out[:to*h.Hidden]
		s.attend(unsafe.Pointer(&out[0]), 4, h.Hidden, qkv, h, from, to, s.narrow.finish[fromScaled][linear][toFloat], scratch)
	}
}

// AttendBF16 is Attend rounded to bfloat16.
func (s *Set) AttendBF16(out *Rows, qkv *Rows, h *Head, from, to int, scratch *AttentionScratch) {
	if from < to {
		numbers := out.BF16(0, to)
		s.attend(unsafe.Pointer(&numbers[0]), 2, out.Stride(), qkv, h, from, to, s.narrow.finish[fromScaled][linear][toBF16], scratch)
	}
}

func (s *Set) attend(out unsafe.Pointer, size, stride int, qkv *Rows, h *Head, from, to int, finish func(*finishArgs), w *AttentionScratch) {
	depth := roundUp(h.Size, panelColumns)
	first, last := h.seen(from, to)
	packed := roundUp(last-first, panelColumns)
	s.packHead(qkv, h, first, last, depth, w)
	w.scores, w.p = growBytes(w.scores, queryRows*packed*4), growBytes(w.p, (queryRows*packed+panelColumns)*2)
	for ; from < to; from += queryRows {
		rows := min(queryRows, to-from)
		start, end := h.seen(from, from+rows)
		keys := roundUp(end-start, panelColumns)
		s.weigh(qkv, h, from, rows, start, end, unsafe.Pointer(&w.keys[(start-first)*depth*2]), depth, w)
		for column := 0; column < h.Size; column += panelColumns {
			sums, _ := w.products.strip()
			w.products.dot = dotArgs{c: sums, ldc: panelBytes, a: unsafe.Pointer(&w.p[0]), lda: keys * 2,
				b: unsafe.Pointer(&w.values[(column*packed+(start-first)*panelColumns)*2]), units: keys / 2, rows: rows, panel: 1}
			s.narrow.bf16Dot(&w.products.dot)
			w.products.finish = finishArgs{acc: sums, ldAcc: panelBytes, out: unsafe.Add(out, (from*stride+h.Column+column)*size),
				ldOut: stride * size, rows: rows, rowScale: &w.inverse[0]}
			w.products.finishPanel(finish, min(panelColumns, h.Size-column), size)
		}
	}
}

// weigh sets p to the exponentials of some queries' scores of keys [start, end).
func (s *Set) weigh(qkv *Rows, h *Head, from, rows, start, end int, panels unsafe.Pointer, depth int, w *AttentionScratch) {
	keys := roundUp(end-start, panelColumns)
	query := unsafe.Pointer(&qkv.BF16(from, from+rows)[h.Column])
	w.products.dot = dotArgs{c: unsafe.Pointer(&w.scores[0]), ldc: keys * 4, a: query, lda: qkv.stride,
		b: panels, units: depth / 2, rows: rows, panel: keys / panelColumns}
	s.narrow.bf16Dot(&w.products.dot)
	if h.Distances != nil {
		for row := range rows {
			scores := at[float32](unsafe.Pointer(&w.scores[0]), row*keys*4, keys)
			s.Add(scores, h.Distances[h.Zero+start-from-row:][:keys])
		}
	}
	w.exponentials = exponentialArgs{p: (*uint16)(unsafe.Pointer(&w.p[0])), ldp: keys * 2,
		s: (*float32)(unsafe.Pointer(&w.scores[0])), lds: keys * 4, keys: end - start, rows: rows,
		inverse: &w.inverse[0], scale: float32(math.Log2E / math.Sqrt(float64(h.Size)))}
	if h.Window == 0 {
		s.narrow.exponentials(&w.exponentials)
		return
	}
	for row := range rows {
		s.weighWithin(h, from+row, row, start, keys, w)
	}
}

// weighWithin sets one query's row of p: what it does not see is zero. What it
// writes beyond the row belongs to the next, which is set after it.
func (s *Set) weighWithin(h *Head, query, row, start, keys int, w *AttentionScratch) {
	first, last := max(h.From, query-h.Window)-start, min(h.To, query+h.Window+1)-start
	p := at[uint16](unsafe.Pointer(&w.p[0]), row*keys*2, keys)
	clear(p)
	e := w.exponentials
	w.exponentials.p, w.exponentials.s = &p[first], (*float32)(unsafe.Pointer(&w.scores[(row*keys+first)*4]))
	w.exponentials.keys, w.exponentials.rows, w.exponentials.inverse = last-first, 1, &w.inverse[row]
	s.narrow.exponentials(&w.exponentials)
	w.exponentials = e
}

// packHead lays out a head's keys and values [first, last), padded with zeros
// to panels of rows and to depth columns.
func (s *Set) packHead(qkv *Rows, h *Head, first, last, depth int, w *AttentionScratch) {
	keys := roundUp(last-first, panelColumns)
	w.keys, w.values = growBytes(w.keys, keys*depth*2), growBytes(w.values, keys*depth*2)
	numbers := qkv.BF16(first, last)
	packKeys, packValues := s.narrow.packKeys, s.narrow.packValues
	if h.Size%panelColumns != 0 {
		packKeys, packValues = packKeysGo, packValuesGo
	}
	p := &w.pack
	*p = packArgs{ld: qkv.stride, rows: last - first, columns: h.Size}
	p.dst, p.src = (*uint16)(unsafe.Pointer(&w.keys[0])), &numbers[h.Hidden+h.Column]
	packKeys(p)
	p.dst, p.src = (*uint16)(unsafe.Pointer(&w.values[0])), &numbers[2*h.Hidden+h.Column]
	packValues(p)
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// growBytes returns aligned memory of n bytes, whose content is undefined.
func growBytes(b []byte, n int) []byte {
	if cap(b) < n {
		return alignedBytes(n)
	}
	return b[:n]
}
