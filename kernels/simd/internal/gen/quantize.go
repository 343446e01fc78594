package main

import (
	"fmt"
	"math"
)

// quantizes writes the quantisation of rows: to the nearest of 255 steps
// between ± the row's largest magnitude, stored with 128 added.
func (f *file) quantizes() {
	f.laneConstants()
	f.quantize("quantizeAVX512", false)
	f.quantize("quantizeRotatedAVX512", true)
	f.quantizePeaks()
}

// laneConstants are the signs of the butterflies inside a register, and the
// order that undoes the interleaving of the pack instructions.
func (f *file) laneConstants() {
	for stage := range 2 {
		for lane := range 16 {
			sign := 1 - 2*float32(lane>>stage&1)
			fmt.Fprintf(&f.constants, "DATA sign%d<>+%d(SB)/4, $%#x\n", stage, 4*lane, math.Float32bits(sign))
		}
		fmt.Fprintf(&f.constants, "GLOBL sign%d<>(SB), RODATA|NOPTR, $64\n", stage)
	}
	for i := range 16 {
		fmt.Fprintf(&f.constants, "DATA unpack<>+%d(SB)/4, $%d\n", 4*i, i%4*4+i/4)
	}
	f.constants.WriteString("GLOBL unpack<>(SB), RODATA|NOPTR, $64\n")
}

func (f *file) quantize(name string, rotate bool) {
	f.function(name, "quantizeArgs", "columns is a multiple of 128.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 8(DI), R8")
	f.op("MOVQ 16(DI), R9")
	f.op("MOVQ 24(DI), SI")
	f.op("MOVQ 40(DI), R11")
	f.op("SHLQ $2, R11")
	f.op("MOVQ 48(DI), R10")
	f.op("MOVQ 32(DI), BX")
	f.op("VPBROADCASTD %s, Z31", f.word("flip", 0x80808080))
	f.op("VMOVUPS unpack<>(SB), Z30")
	f.op("VMOVUPS sign0<>(SB), Z29")
	f.op("VMOVUPS sign1<>(SB), Z28")
	f.label("row")
	f.op("VPXORD Z26, Z26, Z26")
	f.op("VPXORD Z27, Z27, Z27")
	source := "SI"
	f.op("XORQ AX, AX")
	f.aligned("magnitude")
	f.magnitudes(rotate)
	f.op("ADDQ $512, AX")
	f.op("CMPQ AX, R11")
	f.op("JLT magnitude")
	if rotate {
		source = "BX"
	}
	f.scale()
	f.op("XORQ AX, AX")
	f.op("MOVQ DX, CX")
	f.aligned("round")
	f.roundBytes(source)
	f.op("CMPQ AX, R11")
	f.op("JLT round")
	f.op("ADDQ R8, DX")
	f.op("ADDQ R11, SI")
	f.op("ADDQ $4, R9")
	f.op("SUBQ $1, R10")
	f.op("JNZ row")
	f.end()
}

// quantizePeaks is the second half of a quantisation, by given magnitudes.
func (f *file) quantizePeaks() {
	f.function("quantizePeaksAVX512", "peaksArgs", "columns is a multiple of 64.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 8(DI), R8")
	f.op("MOVQ 16(DI), R9")
	f.op("MOVQ 24(DI), SI")
	f.op("MOVQ 32(DI), BX")
	f.op("MOVQ 40(DI), R12")
	f.op("MOVQ 48(DI), R11")
	f.op("SHLQ $2, R11")
	f.op("MOVQ 56(DI), R10")
	f.op("VPBROADCASTD %s, Z31", f.word("flip", 0x80808080))
	f.op("VMOVUPS unpack<>(SB), Z30")
	f.label("row")
	f.op("VMOVUPS (R12), Z26")
	f.op("VMOVAPS Z26, Z27")
	f.scale()
	f.op("XORQ AX, AX")
	f.op("MOVQ DX, CX")
	f.aligned("round")
	f.roundBytes("SI")
	f.op("CMPQ AX, R11")
	f.op("JLT round")
	f.op("ADDQ R8, DX")
	f.op("ADDQ BX, SI")
	f.op("ADDQ $4, R9")
	f.op("ADDQ $64, R12")
	f.op("SUBQ $1, R10")
	f.op("JNZ row")
	f.end()
}

// magnitudes gathers 128 elements' largest magnitudes in Z26 and Z27.
func (f *file) magnitudes(rotate bool) {
	registers := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for i := range registers {
		f.op("VMOVUPS %d(SI)(AX*1), Z%d", 64*i, i)
	}
	if rotate {
		f.between(registers, 8)
		f.within(registers, []int{9, 10, 11, 12, 13, 14, 15, 16}, func(stage int) string { return fmt.Sprintf("Z%d", 29-stage) })
	}
	for i, z := range registers {
		if rotate {
			f.op("VMOVUPS Z%d, %d(BX)(AX*1)", z, 64*i)
		}
		// The larger of two magnitudes.
		f.op("VRANGEPS $0x0b, Z%d, Z%d, Z%d", z, 26+i%2, 26+i%2)
	}
}

// between applies the butterflies of 16, 32 and 64 elements to eight registers,
// which it renames.
func (f *file) between(registers []int, spare int) {
	for _, stage := range []int{1, 2, 4} {
		for i := range registers {
			if i&stage != 0 {
				continue
			}
			a, b := registers[i], registers[i|stage]
			f.op("VADDPS Z%d, Z%d, Z%d", b, a, spare)
			f.op("VSUBPS Z%d, Z%d, Z%d", b, a, b)
			registers[i], spare = spare, a
		}
	}
}

// within applies those of 1 and 2 elements, with the signs of a stage.
func (f *file) within(registers, temporary []int, signs func(stage int) string) {
	for stage, order := range []int{0xb1, 0x4e} {
		for i, z := range registers {
			f.op("VPERMILPS $%#x, Z%d, Z%d", order, z, temporary[i])
			f.op("VFMADD132PS %s, Z%d, Z%d", signs(stage), temporary[i], z)
		}
	}
}

// scale stores the row's scale and leaves its inverse in Z26.
func (f *file) scale() {
	f.op("VMAXPS Z27, Z26, Z26")
	f.reduce("VMAXPS", 26, 27)
	f.op("VMAXSS %s, X26, X26", f.float("tiny", 1e-20))
	f.op("VMULSS %s, X26, X27", f.float("inverse127", 1./127))
	f.op("VMOVSS X27, (R9)")
	f.op("VMOVSS %s, X27", f.float("steps", 127))
	f.op("VDIVSS X26, X27, X26")
	f.op("VBROADCASTSS X26, Z26")
}

// roundBytes writes 64 elements.
func (f *file) roundBytes(source string) {
	for z := range 4 {
		f.op("VMULPS %d(%s)(AX*1), Z26, Z%d", 64*z, source, z)
		f.op("VCVTPS2DQ Z%d, Z%d", z, z)
	}
	f.op("VPACKSSDW Z1, Z0, Z0")
	f.op("VPACKSSDW Z3, Z2, Z2")
	f.op("VPACKSSWB Z2, Z0, Z0")
	f.op("VPERMD Z0, Z30, Z0")
	f.op("VPXORD Z31, Z0, Z0")
	f.op("VMOVUPS Z0, (CX)")
	f.op("ADDQ $64, CX")
	f.op("ADDQ $256, AX")
}
