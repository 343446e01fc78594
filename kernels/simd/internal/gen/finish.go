package main

import "fmt"

// geluBound is where Φ counts as 0 or 1, and gelu holds the coefficients of P
// in Φ(u) ≈ ½ + u·P(u²), |u| ≤ geluBound, from the lowest power up: a minimax
// fit of our own, exact at the bound. GELU's error is below 6e-5 + 3e-6·|x|.
const geluBound = 4.3

var gelu = []float64{
	0.3990282314300122, -0.06649741873415281, 0.009880594933348035,
	-0.001121388850789767, 9.470503181097808e-05, -5.684833435956339e-06,
	2.2572461734761785e-07, -5.253409686991749e-09, 5.3844943905105364e-11,
}

// A finish takes sums of 32 columns to what comes after a product: it adds the
// bias, scales, activates, rounds.
type finish struct {
	name         string
	int8         bool // integers, to be scaled by row and column
	bias         bool
	rowScale     bool
	gelu, toBF16 bool
	gated        bool // times as many numbers that are at hand
}

var finishes = []finish{
	{name: "finishInt8", int8: true, bias: true, rowScale: true},
	{name: "finishInt8GELU", int8: true, bias: true, rowScale: true, gelu: true},
	{name: "finishInt8ToBF16", int8: true, bias: true, rowScale: true, toBF16: true},
	{name: "finishInt8Gated", int8: true, bias: true, rowScale: true, gated: true},
	{name: "finishBF16", bias: true},
	{name: "finishBF16GELU", bias: true, gelu: true},
	{name: "finishBF16GatedToBF16", bias: true, gated: true, toBF16: true},
	{name: "finishBF16GELUToBF16", bias: true, gelu: true, toBF16: true},
	{name: "finishBF16ToBF16", bias: true, toBF16: true},
	{name: "finishScaled", rowScale: true},
	{name: "finishScaledToBF16", rowScale: true, toBF16: true},
}

func (f *file) finishes() {
	for _, k := range finishes {
		if k.toBF16 {
			f.softly(func() { f.finish(k) })
		} else {
			f.finish(k)
		}
	}
	f.finishRotated()
}

func (f *file) finish(k finish) {
	f.function(f.named(k.name), "finishArgs", "See finishArgs; columns are 32.")
	f.finishPrologue(k)
	f.aligned("row")
	f.op("VMOVUPS (SI), Z0")
	f.op("VMOVUPS 64(SI), Z1")
	f.finishLinear(k)
	if k.gelu {
		f.gelu(0)
	}
	if k.gated {
		f.op("VMULPS (R13), Z0, Z0")
		f.op("VMULPS 64(R13), Z1, Z1")
		f.op("ADDQ $%d, R13", panelBytes)
	}
	f.finishStore(k)
	f.op("ADDQ R8, SI")
	f.op("ADDQ R9, DX")
	f.op("SUBQ $1, CX")
	f.op("JNZ row")
	f.end()
}

func (f *file) finishPrologue(k finish) {
	f.op("MOVQ 0(DI), SI")
	f.op("MOVQ 8(DI), R8")
	f.op("MOVQ 16(DI), DX")
	f.op("MOVQ 24(DI), R9")
	f.op("MOVQ 32(DI), CX")
	if k.rowScale {
		f.op("MOVQ 40(DI), R10")
	}
	if k.int8 {
		f.pair(48, 16)
		f.pair(56, 18)
	}
	if k.bias {
		f.pair(64, 20)
	}
	if k.gated {
		f.op("MOVQ 72(DI), R13")
	}
	if k.gelu {
		f.broadcast(8, "bound", geluBound)
		f.broadcast(9, "negativeBound", -geluBound)
		f.broadcast(10, "half", 0.5)
		for i, c := range gelu {
			f.broadcast(22+i, "gelu"+string(rune('0'+i)), c)
		}
	}
}

// pair loads 32 columns from the pointer at an offset in the arguments.
func (f *file) pair(offset, z int) {
	f.op("MOVQ %d(DI), AX", offset)
	f.op("VMOVUPS (AX), Z%d", z)
	f.op("VMOVUPS 64(AX), Z%d", z+1)
}

func (f *file) finishLinear(k finish) {
	if k.rowScale {
		f.op("VBROADCASTSS (R10), Z2")
		f.op("ADDQ $4, R10")
	}
	for z := range 2 {
		if k.int8 {
			f.op("VPADDD Z%d, Z%d, Z%d", 16+z, z, z)
			f.op("VCVTDQ2PS Z%d, Z%d", z, z)
		}
		if k.rowScale {
			f.op("VMULPS Z2, Z%d, Z%d", z, z)
		}
		switch {
		case k.int8:
			f.op("VFMADD213PS Z%d, Z%d, Z%d", 20+z, 18+z, z)
		case k.bias:
			f.op("VADDPS Z%d, Z%d, Z%d", 20+z, z, z)
		}
	}
}

// gelu activates z and the next register, with Z2 to Z7 for itself.
func (f *file) gelu(z int) {
	for i := range 2 {
		f.op("VMINPS Z%d, Z8, Z%d", z+i, 2+i)
		f.op("VMAXPS Z%d, Z9, Z%d", 2+i, 2+i)
		f.op("VMULPS Z%d, Z%d, Z%d", 2+i, 2+i, 4+i)
		f.op("VMOVAPS Z%d, Z%d", 22+len(gelu)-1, 6+i)
	}
	for power := len(gelu) - 2; power >= 0; power-- {
		for i := range 2 {
			f.op("VFMADD213PS Z%d, Z%d, Z%d", 22+power, 4+i, 6+i)
		}
	}
	for i := range 2 {
		f.op("VFMADD213PS Z10, Z%d, Z%d", 2+i, 6+i)
		f.op("VMULPS Z%d, Z%d, Z%d", 6+i, z+i, z+i)
	}
}

// finishRotated is finishInt8GELU on 128 columns, then the rotation that
// precedes a quantisation, and each row's largest magnitudes by lane.
func (f *file) finishRotated() {
	f.function("finishInt8GELURotated", "rotatedArgs", "See rotatedArgs; columns are 128.")
	f.finishPrologue(finish{rowScale: true, gelu: true})
	f.op("MOVQ 48(DI), AX")
	f.op("MOVQ 56(DI), BX")
	f.op("MOVQ 64(DI), R11")
	f.op("MOVQ 72(DI), R12")
	f.aligned("row")
	for pair := range 4 {
		f.op("VBROADCASTSS (R10), Z2")
		for i := range 2 {
			offset, z := 64*(2*pair+i), 12+2*pair+i
			f.op("VMOVDQU32 %d(SI), Z%d", offset, z)
			f.op("VPADDD %d(AX), Z%d, Z%d", offset, z, z)
			f.op("VCVTDQ2PS Z%d, Z%d", z, z)
			f.op("VMULPS Z2, Z%d, Z%d", z, z)
			f.op("VMOVUPS %d(BX), Z%d", offset, 3+i)
			f.op("VFMADD213PS %d(R11), Z%d, Z%d", offset, 3+i, z)
		}
		f.gelu(12 + 2*pair)
	}
	registers := []int{12, 13, 14, 15, 16, 17, 18, 19}
	f.between(registers, 20)
	f.within(registers, []int{0, 1, 2, 3, 4, 5, 6, 7}, func(stage int) string { return fmt.Sprintf("sign%d<>(SB)", stage) })
	f.op("VMOVUPS (R12), Z0")
	f.op("VPXORD Z1, Z1, Z1")
	for i, z := range registers {
		f.op("VMOVUPS Z%d, %d(DX)", z, 64*i)
		f.op("VRANGEPS $0x0b, Z%d, Z%d, Z%d", z, i%2, i%2)
	}
	f.op("VMAXPS Z1, Z0, Z0")
	f.op("VMOVUPS Z0, (R12)")
	f.op("ADDQ $64, R12")
	f.op("ADDQ $4, R10")
	f.op("ADDQ R8, SI")
	f.op("ADDQ R9, DX")
	f.op("SUBQ $1, CX")
	f.op("JNZ row")
	f.end()
}

func (f *file) finishStore(k finish) {
	if k.toBF16 {
		f.roundPair(2, 0, 1)
		f.op("VMOVUPS Z2, (DX)")
		return
	}
	f.op("VMOVUPS Z0, (DX)")
	f.op("VMOVUPS Z1, 64(DX)")
}
