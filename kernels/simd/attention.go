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
func (s *Set) Attend(out []float32, qkv *Rows, h Head, from, to int, scratch *AttentionScratch) {
	if from < to {
		out = out[:to*h.Hidden]
		s.attend(unsafe.Pointer(&out[0]), 4, h.Hidden, qkv, h, from, to, s.narrow.finish[fromScaled][linear][toFloat], scratch)
	}
}

// AttendBF16 is Attend rounded to bfloat16.
func (s *Set) AttendBF16(out *Rows, qkv *Rows, h Head, from, to int, scratch *AttentionScratch) {
	if from < to {
		numbers := out.BF16(0, to)
		s.attend(unsafe.Pointer(&numbers[0]), 2, out.Stride(), qkv, h, from, to, s.narrow.finish[fromScaled][linear][toBF16], scratch)
	}
}

func (s *Set) attend(out unsafe.Pointer, size, stride int, qkv *Rows, h Head, from, to int, finish func(*finishArgs), w *AttentionScratch) {
	keys := roundUp(h.To-h.From, panelColumns)
	depth := roundUp(h.Size, panelColumns)
	s.packHead(qkv, h, keys, depth, w)
	w.scores, w.p = growBytes(w.scores, queryRows*keys*4), growBytes(w.p, queryRows*keys*2)
	for ; from < to; from += queryRows {
		rows := min(queryRows, to-from)
		s.weigh(qkv, h, from, rows, keys, depth, w)
		for column := 0; column < h.Size; column += panelColumns {
			sums, _ := w.products.strip()
			w.products.dot = dotArgs{c: sums, ldc: panelBytes, a: unsafe.Pointer(&w.p[0]), lda: keys * 2,
				b: unsafe.Pointer(&w.values[column*keys*2]), units: keys / 2, rows: rows, panel: 1}
			s.narrow.bf16Dot(&w.products.dot)
			w.products.finish = finishArgs{acc: sums, ldAcc: panelBytes, out: unsafe.Add(out, (from*stride+h.Column+column)*size),
				ldOut: stride * size, rows: rows, rowScale: &w.inverse[0]}
			w.products.finishPanel(finish, min(panelColumns, h.Size-column), size)
		}
	}
}

// weigh sets p to the exponentials of some queries' scores.
func (s *Set) weigh(qkv *Rows, h Head, from, rows, keys, depth int, w *AttentionScratch) {
	query := unsafe.Pointer(&qkv.BF16(from, from+rows)[h.Column])
	w.products.dot = dotArgs{c: unsafe.Pointer(&w.scores[0]), ldc: keys * 4, a: query, lda: qkv.stride,
		b: unsafe.Pointer(&w.keys[0]), units: depth / 2, rows: rows, panel: keys / panelColumns}
	s.narrow.bf16Dot(&w.products.dot)
	w.exponentials = exponentialArgs{p: (*uint16)(unsafe.Pointer(&w.p[0])), ldp: keys * 2,
		s: (*float32)(unsafe.Pointer(&w.scores[0])), lds: keys * 4, keys: h.To - h.From, rows: rows,
		inverse: &w.inverse[0], scale: float32(math.Log2E / math.Sqrt(float64(h.Size)))}
	s.narrow.exponentials(&w.exponentials)
}

// packHead lays out a head's keys and values, padded with zeros to keys rows
// and depth columns.
func (s *Set) packHead(qkv *Rows, h Head, keys, depth int, w *AttentionScratch) {
	w.keys, w.values = growBytes(w.keys, keys*depth*2), growBytes(w.values, keys*depth*2)
	numbers := qkv.BF16(h.From, h.To)
	packKeys, packValues := s.narrow.packKeys, s.narrow.packValues
	if h.Size%panelColumns != 0 {
		packKeys, packValues = packKeysGo, packValuesGo
	}
	p := &w.pack
	*p = packArgs{ld: qkv.stride, rows: h.To - h.From, columns: h.Size}
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
