package main

import "fmt"

// exp2 holds the coefficients of 2^f, |f| ≤ ½, from the lowest power up: a
// minimax fit of our own with a relative error below 3e-6.
var exp2 = []float64{0.9999992614069404, 0.6931218148130511, 0.24024744956664168, 0.05591785990992944, 0.009570096695407777}

// exponentials writes softmax without its division: rows of scores become
// bfloat16 exponentials, the largest 1, and the inverses of their sums.
func (f *file) exponentials() {
	f.function(f.named("exponentialsAVX512"), "exponentialArgs", "Columns up to a multiple of 32 are written, those beyond the keys with zero.")
	f.exponentialPrologue()
	f.label("row")
	f.op("VMOVAPS Z29, Z0")
	f.op("VMOVAPS Z29, Z1")
	f.blocks("largest", func(masks bool) {
		for z := range 2 {
			f.op("VMAXPS %d(AX), Z%d, %sZ%d", 64*z, z, mask(masks, z), z)
		}
	})
	f.op("VMAXPS Z1, Z0, Z0")
	f.reduce("VMAXPS", 0, 1)
	f.op("VPXORD Z10, Z10, Z10")
	f.op("VPXORD Z11, Z11, Z11")
	f.op("MOVQ R10, DX")
	f.blocks("exponential", f.exponential)
	f.op("VADDPS Z11, Z10, Z10")
	f.reduce("VADDPS", 10, 11)
	f.op("VMOVSS %s, X11", f.float("one", 1))
	f.op("VDIVSS X10, X11, X10")
	f.op("VMOVSS X10, (R13)")
	f.op("ADDQ $4, R13")
	f.op("ADDQ R8, SI")
	f.op("ADDQ R11, R10")
	f.op("SUBQ $1, R12")
	f.op("JNZ row")
	f.end()
}

func (f *file) exponentialPrologue() {
	f.op("MOVQ 0(DI), R10")
	f.op("MOVQ 8(DI), R11")
	f.op("MOVQ 16(DI), SI")
	f.op("MOVQ 24(DI), R8")
	f.op("MOVQ 40(DI), R12")
	f.op("MOVQ 48(DI), R13")
	f.op("VBROADCASTSS 56(DI), Z31")
	f.broadcast(30, "lowest", -126)
	f.broadcast(29, "negative", -3.4e38)
	for i, c := range exp2 {
		f.broadcast(20+i, "exp"+string(rune('0'+i)), c)
	}
	// R9 counts whole blocks of 32 keys; K1 and K2 mask the last keys.
	f.op("MOVQ 32(DI), CX")
	f.op("MOVQ CX, R9")
	f.op("SHRQ $5, R9")
	f.op("ANDQ $31, CX")
	f.op("MOVQ CX, BX")
	f.op("MOVQ $1, AX")
	f.op("SHLQ CX, AX")
	f.op("SUBQ $1, AX")
	f.op("KMOVW AX, K1")
	f.op("SHRQ $16, AX")
	f.op("KMOVW AX, K2")
}

func mask(masks bool, z int) string {
	if !masks {
		return ""
	}
	return fmt.Sprintf("K%d, ", z+1)
}

// blocks visits a row at AX by 32 keys, the last ones under masks.
func (f *file) blocks(label string, visit func(masks bool)) {
	f.op("MOVQ SI, AX")
	f.op("MOVQ R9, CX")
	f.op("TESTQ CX, CX")
	f.op("JZ %sLast", label)
	f.label(label)
	visit(false)
	f.op("ADDQ $128, AX")
	f.op("SUBQ $1, CX")
	f.op("JNZ %s", label)
	f.label(label + "Last")
	f.op("TESTQ BX, BX")
	f.op("JZ %sDone", label)
	visit(true)
	f.label(label + "Done")
}

func (f *file) exponential(masks bool) {
	for z := range 2 {
		if masks {
			f.op("VMOVUPS.Z %d(AX), K%d, Z%d", 64*z, z+1, 4+z)
		} else {
			f.op("VMOVUPS %d(AX), Z%d", 64*z, 4+z)
		}
		f.op("VSUBPS Z0, Z%d, Z%d", 4+z, 4+z) // before scaling, so that the largest gives 1 however large
		f.op("VMULPS Z31, Z%d, Z%d", 4+z, 4+z)
		f.op("VMAXPS Z30, Z%d, Z%d", 4+z, 4+z)
		f.op("VRNDSCALEPS $0, Z%d, Z%d", 4+z, 6+z)
		f.op("VSUBPS Z%d, Z%d, Z%d", 6+z, 4+z, 4+z)
		f.op("VMOVAPS Z%d, Z%d", 20+len(exp2)-1, 8+z)
	}
	for i := len(exp2) - 2; i >= 0; i-- {
		for z := range 2 {
			f.op("VFMADD213PS Z%d, Z%d, Z%d", 20+i, 4+z, 8+z)
		}
	}
	for z := range 2 {
		if masks {
			f.op("VSCALEFPS.Z Z%d, Z%d, K%d, Z%d", 6+z, 8+z, z+1, 8+z)
		} else {
			f.op("VSCALEFPS Z%d, Z%d, Z%d", 6+z, 8+z, 8+z)
		}
		f.op("VADDPS Z%d, Z%d, Z%d", 8+z, 10+z, 10+z)
	}
	f.roundPair(12, 8, 9)
	f.op("VMOVUPS Z12, (DX)")
	f.op("ADDQ $64, DX")
}
