package simd

import "unsafe"

// narrowSet is the kernels on 8- and 16-bit numbers of one instruction set.
type narrowSet struct {
	int8Dot, bf16Dot func(*dotArgs)
	codeDot          func(*dotArgs)             // int8Dot that touches no row but those of a
	finish           [3][3][2]func(*finishArgs) // by source, activation and output
	quantize         func(r *Rows, from int, x []float32, rotated bool, scratch []float32)
	roundRows        func(r *Rows, from int, x []float32)
	addNorm          func(x, y, gain, bias []float32, epsilon float32) // nil where there is none, as those that follow
	norm             func(x, gain, bias []float32, epsilon float32)
	add              func(y, x []float32)
	widen            func(p widenArgs, number Number)
	exponentials     func(*exponentialArgs)
	rope             func(x []uint16, cos, sin []float32)
	packKeys         func(*packArgs)
	packValues       func(*packArgs)
	fastBF16         bool
	stripRows        int                // rows of a product whose inputs and sums fit the first-level cache
	finishRotated    func(*rotatedArgs) // nil where there is none, as quantizePeaks
	quantizePeaks    func(*peaksArgs)
}

// Narrow tells whether s has instructions for 8- and 16-bit numbers; where it
// has none, plain Go makes them far slower than float32.
func (s *Set) Narrow() bool { return s.narrow.quantizePeaks != nil }

// FastBF16 tells whether 16-bit products are faster than float32's: with tiles,
// and where one instruction multiplies pairs.
func (s *Set) FastBF16() bool { return s.narrow.fastBF16 }

// What a finish begins with, and what it writes.
const (
	fromInt8 = iota
	fromBF16
	fromScaled

	toFloat = 0
	toBF16  = 1

	linear = 0
	gelu   = 1
	gated  = 2 // times the gates
)

// The kernels' arguments; lengths of rows, named ld…, are in bytes.
type (
	// dotArgs: sums c of rows × panels · 32 columns, of a's rows and b's panels
	// in units of 4 bytes of depth. Rows of a and c may be touched up to a
	// multiple of 16.
	dotArgs struct {
		c     unsafe.Pointer
		ldc   int
		a     unsafe.Pointer
		lda   int
		b     unsafe.Pointer
		units int
		rows  int
		panel int // panels
	}

	// finishArgs: out = rowScale·(acc + offset)·scale + bias, as far as the
	// source has them, activated and rounded; 32 columns. The gates lie as dense
	// as they can.
	finishArgs struct {
		acc         unsafe.Pointer
		ldAcc       int
		out         unsafe.Pointer
		ldOut       int
		rows        int
		rowScale    *float32
		offset      *int32
		scale, bias *float32
		gates       unsafe.Pointer
	}

	// quantizeArgs: q and scale of rows of x; scratch holds one row.
	quantizeArgs struct {
		q          *byte
		ldq        int
		scale      *float32
		x, scratch *float32
		columns    int
		rows       int
	}

	// rotatedArgs: GELU of finishArgs' out from integers, rotated as ref.Rotate
	// does it; 128 columns. peaks holds 16 numbers a row, whose largest is
	// raised to the largest magnitude.
	rotatedArgs struct {
		acc         unsafe.Pointer
		ldAcc       int
		out         unsafe.Pointer
		ldOut       int
		rows        int
		rowScale    *float32
		offset      *int32
		scale, bias *float32
		peaks       *float32
	}

	// peaksArgs: q and scale of rows of x, ldx apart, whose largest magnitudes
	// are known.
	peaksArgs struct {
		q       *byte
		ldq     int
		scale   *float32
		x       *float32
		ldx     int
		peaks   *float32
		columns int
		rows    int
	}

	// normArgs: x, or x + y, normalised, to x. inverse is 1/columns.
	normArgs struct {
		x, y, gain, bias *float32
		columns, rows    int
		epsilon, inverse float32
	}

	// addArgs: n elements from src to dst, or added to it.
	addArgs struct {
		dst, src unsafe.Pointer
		n        int
	}

	// widenArgs: n numbers as floats, integers times scale.
	widenArgs struct {
		dst   *float32
		src   unsafe.Pointer
		n     int
		scale float32
	}

	// exponentialArgs: p = 2^(scale·(s − max s)) and the inverse of its sum, by
	// rows of keys scores.
	exponentialArgs struct {
		p          *uint16
		ldp        int
		s          *float32
		lds        int
		keys, rows int
		inverse    *float32
		scale      float32
	}

	// ropeArgs: heads of 2·half bfloat16 numbers, turned by half angles.
	ropeArgs struct {
		x           *uint16
		cos, sin    *float32
		half, heads int
	}

	// packArgs: rows × columns bfloat16 numbers, ld apart, to panels.
	packArgs struct {
		dst, src      *uint16
		ld            int
		rows, columns int
	}
)

// Scratch is the memory that one goroutine needs for products. Arguments lie
// here because what a kernel gets, by a pointer to it, escapes to the heap.
type Scratch struct {
	sums  []byte // one strip, and in it what lies beyond the last column
	edge  []byte
	gates []byte // one strip

	dot     dotArgs
	finish  finishArgs
	rotated rotatedArgs
	peaks   peaksArgs
}

// maxStripRows is the most that any set's stripRows is.
const maxStripRows = 48

func (s *Scratch) strip() (sums, edge unsafe.Pointer) {
	if s.sums == nil {
		s.sums = alignedBytes(maxStripRows * blockBytes)
		s.edge = alignedBytes(maxStripRows * panelBytes)
		s.gates = alignedBytes(maxStripRows * panelBytes)
	}
	return unsafe.Pointer(&s.sums[0]), unsafe.Pointer(&s.edge[0])
}

// Product computes rows [from, to) of x·w + bias, with GELU applied if asked,
// into the rows of out, w.Columns apart.
func (s *Set) Product(out []float32, x *Rows, w *Weights, from, to int, activate bool, scratch *Scratch) {
	out = out[:(to-from)*w.Columns]
	s.product(unsafe.Pointer(unsafe.SliceData(out)), 4, w.Columns, x, w, from, to, activate, toFloat, scratch)
}

// ProductBF16 is Product rounded to bfloat16, into the rows of out from at on,
// which has w's columns as its depth.
func (s *Set) ProductBF16(out *Rows, at int, x *Rows, w *Weights, from, to int, activate bool, scratch *Scratch) {
	if out.number != BF16 || out.depth != w.Columns {
		panic("simd: rows do not fit the product")
	}
	numbers := out.BF16(at, at+to-from)
	s.product(unsafe.Pointer(unsafe.SliceData(numbers)), 2, out.Stride(), x, w, from, to, activate, toBF16, scratch)
}

func (s *Set) product(out unsafe.Pointer, size, stride int, x *Rows, w *Weights, from, to int, activate bool, form int, scratch *Scratch) {
	x.check(w, from, to)
	activation := linear
	if activate {
		activation = gelu
	}
	dot, finish := s.narrow.dot(w.number), s.narrow.finishOf(w.number, activation, form)
	s.narrow.eachStrip(w, from, to, func(row, rows, column int) {
		scratch.aim(x, w, row, rows, column)
		dot(&scratch.dot)
		scratch.finish.out, scratch.finish.ldOut = unsafe.Add(out, ((row-from)*stride+column)*size), stride*size
		scratch.finishPanel(finish, min(panelColumns, w.Columns-column), size)
	})
}

// productGated is product with each number multiplied by that of x·gate + bias,
// activated: by GELU, or by other.
func (s *Set) productGated(out unsafe.Pointer, size, stride int, x *Rows, gate, w *Weights, from, to int, other func([]float32), form int, scratch *Scratch) {
	x.check(gate, from, to)
	x.check(w, from, to)
	activation := gelu
	if other != nil {
		activation = linear
	}
	dot, open, finish := s.narrow.dot(w.number), s.narrow.finishOf(w.number, activation, toFloat), s.narrow.finishOf(w.number, gated, form)
	s.narrow.eachStrip(w, from, to, func(row, rows, column int) {
		scratch.aim(x, gate, row, rows, column)
		dot(&scratch.dot)
		gates := unsafe.Pointer(&scratch.gates[0])
		scratch.finish.out, scratch.finish.ldOut = gates, panelBytes
		open(&scratch.finish)
		if other != nil {
			other(at[float32](gates, 0, rows*panelColumns))
		}
		scratch.aim(x, w, row, rows, column)
		dot(&scratch.dot)
		scratch.finish.out, scratch.finish.ldOut = unsafe.Add(out, ((row-from)*stride+column)*size), stride*size
		scratch.finish.gates = gates
		scratch.finishPanel(finish, min(panelColumns, w.Columns-column), size)
	})
}

// eachStrip visits rows [from, to) by few at a time, and by panels of w.
func (n *narrowSet) eachStrip(w *Weights, from, to int, visit func(row, rows, column int)) {
	block := n.blockRows(w)
	for ; from < to; from += block {
		end := min(from+block, to)
		for column := 0; column < w.Columns; column += panelColumns {
			for row := from; row < end; row += n.stripRows {
				visit(row, min(n.stripRows, end-row), column)
			}
		}
	}
}

// secondLevel is less than any second-level cache holds.
const secondLevel = 1 << 20

// blockRows is how many rows meet a panel before the next panel's turn: few
// where all weights stay in the second-level cache, more where they do not.
func (n *narrowSet) blockRows(w *Weights) int {
	if len(w.data) < secondLevel {
		return n.stripRows
	}
	return largeBlock * n.stripRows
}

const largeBlock = 8

// aim sets the arguments of a product of rows of x with the panel at column.
func (s *Scratch) aim(x *Rows, w *Weights, from, rows, column int) {
	sums, _ := s.strip()
	s.dot = dotArgs{c: sums, ldc: panelBytes, a: unsafe.Pointer(&x.data[from*x.stride]), lda: x.stride,
		b: unsafe.Pointer(&w.data[column*w.stride]), units: w.stride / unitBytes, rows: rows, panel: 1}
	s.finish = finishArgs{acc: sums, ldAcc: panelBytes, rows: rows, rowScale: &x.scale[from],
		offset: &w.offset[column], scale: &w.scale[column], bias: &w.bias[column]}
}

// check panics, as indexing would, where rows [from, to) cannot meet w.
func (r *Rows) check(w *Weights, from, to int) {
	if r.number != w.number || r.depth != w.Depth {
		panic("simd: rows do not fit the weights")
	}
	_ = r.scale[from:to]
}

func (n *narrowSet) dot(number Number) func(*dotArgs) {
	if number == Int8 {
		return n.int8Dot
	}
	return n.bf16Dot
}

func (n *narrowSet) finishOf(number Number, activation, form int) func(*finishArgs) {
	if number == Int8 {
		return n.finish[fromInt8][activation][form]
	}
	return n.finish[fromBF16][activation][form]
}

// finishPanel writes some columns, of size bytes each; those that are no whole
// panel pass through the edge.
func (s *Scratch) finishPanel(finish func(*finishArgs), columns, size int) {
	f := &s.finish
	if columns == panelColumns {
		finish(f)
		return
	}
	out, ldOut := f.out, f.ldOut
	_, f.out = s.strip()
	f.ldOut = panelBytes
	finish(f)
	for row := range f.rows {
		from, to := unsafe.Add(f.out, row*panelBytes), unsafe.Add(out, row*ldOut)
		copy(unsafe.Slice((*byte)(to), columns*size), unsafe.Slice((*byte)(from), columns*size))
	}
}
