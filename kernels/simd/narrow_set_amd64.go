package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// narrowVNNI wants AVX-512 with VNNI.
func narrowVNNI() narrowSet {
	n := portableNarrow()
	n.int8Dot, n.bf16Dot = byRows(&int8Dots), byRows(&bf16DotsSoft)
	n.codeDot = n.int8Dot
	n.finish[fromInt8][linear] = [2]func(*finishArgs){finishInt8, finishInt8ToBF16Soft}
	n.finish[fromInt8][gelu][toFloat] = finishInt8GELU
	n.finish[fromInt8][gated][toFloat] = finishInt8Gated
	n.finish[fromBF16][gelu][toFloat] = finishBF16GELU
	n.finish[fromBF16][gated][toBF16] = finishBF16GatedToBF16Soft
	n.finish[fromBF16][linear] = [2]func(*finishArgs){finishBF16, finishBF16ToBF16Soft}
	n.finish[fromBF16][gelu][toBF16] = finishBF16GELUToBF16Soft
	n.finish[fromScaled][linear] = [2]func(*finishArgs){finishScaled, finishScaledToBF16Soft}
	n.quantize, n.roundRows = quantize512, roundRowsVNNI
	n.addNorm, n.norm, n.add, n.widen = addNorm512, norm512, add512, widen512
	n.exponentials, n.rope = exponentialsAVX512Soft, ropeVNNI
	n.packKeys, n.packValues = packKeys512, packValuesAVX512
	n.finishRotated, n.quantizePeaks = finishInt8GELURotated, quantizePeaksAVX512
	n.stripRows = 4 * len(int8Dots)
	return n
}

// narrowBF16 wants the bfloat16 instructions besides.
func narrowBF16() narrowSet {
	n := narrowVNNI()
	n.fastBF16, n.bf16Dot = true, byRows(&bf16Dots)
	n.finish[fromInt8][linear][toBF16] = finishInt8ToBF16
	n.finish[fromBF16][linear][toBF16] = finishBF16ToBF16
	n.finish[fromBF16][gelu][toBF16] = finishBF16GELUToBF16
	n.finish[fromBF16][gated][toBF16] = finishBF16GatedToBF16
	n.finish[fromScaled][linear][toBF16] = finishScaledToBF16
	n.roundRows, n.exponentials, n.rope = roundRowsBF16, exponentialsAVX512, ropeBF16
	return n
}

// narrowAMX wants tiles besides.
func narrowAMX() narrowSet {
	n := narrowBF16()
	n.int8Dot, n.bf16Dot, n.stripRows = int8AMX, bf16AMX, 32
	return n
}

func hasVNNI() bool {
	return cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI
}

// The products by number of rows, from 1 on.
var (
	int8Dots = [...]func(*dotArgs){int8Dot1, int8Dot2, int8Dot3, int8Dot4, int8Dot5, int8Dot6,
		int8Dot7, int8Dot8, int8Dot9, int8Dot10, int8Dot11, int8Dot12}
	bf16Dots = [...]func(*dotArgs){bf16Dot1, bf16Dot2, bf16Dot3, bf16Dot4, bf16Dot5, bf16Dot6,
		bf16Dot7, bf16Dot8, bf16Dot9, bf16Dot10, bf16Dot11, bf16Dot12}
	bf16DotsSoft = [...]func(*dotArgs){bf16Dot1Soft, bf16Dot2Soft, bf16Dot3Soft, bf16Dot4Soft, bf16Dot5Soft, bf16Dot6Soft,
		bf16Dot7Soft, bf16Dot8Soft, bf16Dot9Soft, bf16Dot10Soft, bf16Dot11Soft, bf16Dot12Soft}
)

// byRows computes a product by tiles of equal height as far as can be, since a
// low tile is not much faster than a high one. No pointer ever leaves its
// buffer: the garbage collector may look at it.
func byRows(dots *[12]func(*dotArgs)) func(*dotArgs) {
	return func(p *dotArgs) {
		whole := *p
		tiles := (whole.rows + len(dots) - 1) / len(dots)
		for panel := range whole.panel {
			p.b = unsafe.Add(whole.b, panel*p.units*panelBytes)
			for tile := range tiles {
				first := tile * whole.rows / tiles
				p.rows = (tile+1)*whole.rows/tiles - first
				p.a, p.c = unsafe.Add(whole.a, first*p.lda), unsafe.Add(whole.c, first*p.ldc+panel*panelBytes)
				dots[p.rows-1](p)
			}
		}
		*p = whole
	}
}

func quantize512(r *Rows, from int, x []float32, rotated bool, scratch []float32) {
	p := quantizeArgs{q: &r.data[from*r.stride], ldq: r.stride, scale: &r.scale[from], x: &x[0],
		scratch: &scratch[0], columns: r.depth, rows: len(x) / r.depth}
	if rotated {
		quantizeRotatedAVX512(&p)
		return
	}
	quantizeAVX512(&p)
}

// The functions below call assembly by name, not by a variable: so their
// arguments stay on the stack.

func roundRowsVNNI(r *Rows, from int, x []float32) {
	if r.depth%32 != 0 {
		roundRowsGo(r, from, x)
		return
	}
	roundBF16Soft(&addArgs{dst: unsafe.Pointer(&r.data[from*r.stride]), src: unsafe.Pointer(&x[0]), n: len(x)})
}

func roundRowsBF16(r *Rows, from int, x []float32) {
	if r.depth%32 != 0 {
		roundRowsGo(r, from, x)
		return
	}
	roundBF16(&addArgs{dst: unsafe.Pointer(&r.data[from*r.stride]), src: unsafe.Pointer(&x[0]), n: len(x)})
}

func addNorm512(x, y, gain, bias []float32, epsilon float32) {
	columns := len(gain)
	addNormAVX512(&normArgs{x: &x[0], y: &y[0], gain: &gain[0], bias: &bias[0], columns: columns,
		rows: len(x) / columns, epsilon: epsilon, inverse: 1 / float32(columns)})
}

func norm512(x, gain, bias []float32, epsilon float32) {
	columns := len(gain)
	normAVX512(&normArgs{x: &x[0], gain: &gain[0], bias: &bias[0], columns: columns,
		rows: len(x) / columns, epsilon: epsilon, inverse: 1 / float32(columns)})
}

func ropeVNNI(x []uint16, cos, sin []float32) {
	if len(cos)%16 != 0 {
		ropeGo(x, cos, sin)
		return
	}
	ropeAVX512Soft(&ropeArgs{x: &x[0], cos: &cos[0], sin: &sin[0], half: len(cos), heads: len(x) / (2 * len(cos))})
}

func ropeBF16(x []uint16, cos, sin []float32) {
	if len(cos)%16 != 0 {
		ropeGo(x, cos, sin)
		return
	}
	ropeAVX512(&ropeArgs{x: &x[0], cos: &cos[0], sin: &sin[0], half: len(cos), heads: len(x) / (2 * len(cos))})
}

func add512(y, x []float32) {
	addAVX512(&addArgs{dst: unsafe.Pointer(&y[0]), src: unsafe.Pointer(&x[0]), n: len(y)})
}

func widen512(p widenArgs, number Number) {
	if number == BF16 {
		widenBF16AVX512(&p)
		return
	}
	widenInt8AVX512(&p)
}

func packKeys512(p *packArgs) {
	rows := p.rows
	p.rows = roundUp(rows, panelColumns)
	packKeysAVX512(p)
	p.rows = rows
}
