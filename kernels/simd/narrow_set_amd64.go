package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// narrow512 wants AVX-512 with VNNI and BF16.
func narrow512() narrowSet {
	n := portableNarrow()
	n.int8Dot, n.bf16Dot = byRows(&int8Dots), byRows(&bf16Dots)
	n.finish[fromInt8] = [2][2]func(*finishArgs){
		linear: {finishInt8, finishInt8ToBF16},
		gelu:   {finishInt8GELU, n.finish[fromInt8][gelu][toBF16]},
	}
	n.finish[fromBF16] = [2][2]func(*finishArgs){
		linear: {finishBF16, finishBF16ToBF16},
		gelu:   {n.finish[fromBF16][gelu][toFloat], finishBF16GELUToBF16},
	}
	n.finish[fromScaled][linear] = [2]func(*finishArgs){finishScaled, finishScaledToBF16}
	n.quantize, n.roundRows = quantize512, roundRows512
	n.addNorm, n.add, n.exponentials = addNormAVX512, addAVX512, exponentialsAVX512
	n.packKeys, n.packValues = packKeys512, packValuesAVX512
	n.finishRotated, n.quantizePeaks = finishInt8GELURotated, quantizePeaksAVX512
	n.stripRows = 4 * len(int8Dots)
	return n
}

func narrowAMX() narrowSet {
	n := narrow512()
	n.int8Dot, n.bf16Dot, n.stripRows = int8AMX, bf16AMX, 32
	return n
}

// hasNarrow512 tells whether narrow512 runs here.
func hasNarrow512() bool {
	return cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL &&
		cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BF16
}

// The products by number of rows, from 1 on.
var (
	int8Dots = [...]func(*dotArgs){int8Dot1, int8Dot2, int8Dot3, int8Dot4, int8Dot5, int8Dot6,
		int8Dot7, int8Dot8, int8Dot9, int8Dot10, int8Dot11, int8Dot12}
	bf16Dots = [...]func(*dotArgs){bf16Dot1, bf16Dot2, bf16Dot3, bf16Dot4, bf16Dot5, bf16Dot6,
		bf16Dot7, bf16Dot8, bf16Dot9, bf16Dot10, bf16Dot11, bf16Dot12}
)

// byRows computes a product by tiles of equal height as far as can be, since a
// low tile is not much faster than a high one.
func byRows(dots *[12]func(*dotArgs)) func(*dotArgs) {
	return func(p *dotArgs) {
		tiles := (p.rows + len(dots) - 1) / len(dots)
		for panel := range p.panel {
			t := *p
			t.b, t.c = unsafe.Add(p.b, panel*p.units*panelBytes), unsafe.Add(p.c, panel*panelBytes)
			for tile := range tiles {
				t.rows = (tile+1)*p.rows/tiles - tile*p.rows/tiles
				dots[t.rows-1](&t)
				t.a, t.c = unsafe.Add(t.a, t.rows*t.lda), unsafe.Add(t.c, t.rows*t.ldc)
			}
		}
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

func roundRows512(r *Rows, from int, x []float32) {
	if r.depth%32 != 0 {
		roundRowsGo(r, from, x)
		return
	}
	roundBF16(&addArgs{dst: unsafe.Pointer(&r.data[from*r.stride]), src: unsafe.Pointer(&x[0]), n: len(x)})
}

func packKeys512(p *packArgs) {
	q := *p
	q.rows = roundUp(p.rows, panelColumns)
	packKeysAVX512(&q)
}
