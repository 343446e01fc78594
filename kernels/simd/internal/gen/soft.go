package main

import "fmt"

// CPUs with VNNI that lack the bfloat16 instructions get functions of their
// own, whose names end in Soft: the same, with these in place of those.

// softly writes functions once with the instructions and once without.
func (f *file) softly(write func()) {
	write()
	f.soft = true
	write()
	f.soft = false
}

// named is a function's name on the CPUs it is written for.
func (f *file) named(name string) string {
	if f.soft {
		return name + "Soft"
	}
	return name
}

// roundPair rounds the floats of low and high to one register; they are lost.
func (f *file) roundPair(dst, low, high int) {
	if !f.soft {
		f.vcvtne2ps2bf16(dst, low, high)
		return
	}
	for _, z := range []int{low, high} { // to the nearest, ties to even
		f.op("VPSRLD $16, Z%d, Z%d", z, dst)
		f.op("VPANDD.BCST %s, Z%d, Z%d", f.word("lowestBit", 1), dst, dst)
		f.op("VPADDD.BCST %s, Z%d, Z%d", f.word("almostHalf", 0x7fff), dst, dst)
		f.op("VPADDD Z%d, Z%d, Z%d", dst, z, z)
	}
	f.op("VMOVDQU32 oddWords<>(SB), Z%d", dst)
	f.op("VPERMI2W Z%d, Z%d, Z%d", high, low, dst)
}

// softConstants are the words of two registers that hold the upper halves.
func (f *file) softConstants() {
	for i := range 16 {
		fmt.Fprintf(&f.constants, "DATA oddWords<>+%d(SB)/4, $%#x\n", 4*i, 4*i+1|(4*i+3)<<16)
	}
	f.constants.WriteString("GLOBL oddWords<>(SB), RODATA|NOPTR, $64\n")
}

// softDots writes the products of bfloat16 pairs as two of floats each.
func (f *file) softDots() {
	for rows := 1; rows <= maxRows; rows++ {
		f.function(fmt.Sprintf("bf16Dot%dSoft", rows), "dotArgs", fmt.Sprintf("%d × 32 sums.", rows))
		f.dotPrologue(rows)
		f.op("VPBROADCASTD %s, Z31", f.word("upperHalf", 0xffff0000))
		f.aligned("loop")
		f.op("VMOVUPS (DX), Z24")
		f.op("VMOVUPS 64(DX), Z25")
		f.halves(24, 26)
		f.halves(25, 27)
		for row := range rows {
			f.op("VPBROADCASTD %s, Z28", rowAddress(row, 0))
			f.halves(28, 29)
			for half := range 2 {
				f.op("VFMADD231PS Z%d, Z29, Z%d", 26+half, 2*row+half)
				f.op("VFMADD231PS Z%d, Z28, Z%d", 24+half, 2*row+half)
			}
		}
		for _, pointer := range rowPointers[:(rows+2)/3] {
			f.op("ADDQ $4, %s", pointer)
		}
		f.op("ADDQ $%d, DX", panelBytes)
		f.op("SUBQ $1, CX")
		f.op("JNZ loop")
		f.dotEpilogue(rows)
	}
}

// halves takes pairs apart: the first numbers to low, the second in place.
func (f *file) halves(z, low int) {
	f.op("VPSLLD $16, Z%d, Z%d", z, low)
	f.op("VPANDD Z31, Z%d, Z%d", z, z)
}
