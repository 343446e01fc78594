package main

import "fmt"

// amxDots writes the same products by tiles of 16 rows of 64 bytes: a block
// of 32 × 32 sums lies in tiles 0 to 3, or one of 16 × 32 in tiles 0 and 1.
func (f *file) amxDots() {
	f.amxConfiguration()
	f.amxDot("int8AMX", func(dst, a, b int) { f.tiledot("TDPBUSD", prefix66, 0x5e, dst, a, b) })
	f.amxDot("bf16AMX", func(dst, a, b int) { f.tiledot("TDPBF16PS", prefixF3, 0x5c, dst, a, b) })
}

// amxConfiguration is palette 1 with eight whole tiles.
func (f *file) amxConfiguration() {
	const columns, rows = 0x0040004000400040, 0x1010101010101010
	for i, quad := range []uint64{1, 0, columns, columns, 0, 0, rows, 0} {
		fmt.Fprintf(&f.constants, "DATA tiles<>+%d(SB)/8, $%#x\n", 8*i, quad)
	}
	f.constants.WriteString("GLOBL tiles<>(SB), RODATA|NOPTR, $64\n")
}

// The registers of an AMX kernel: AX the stride of c, CX of b, R8 of a; R9 the
// rows and R15 the panels to do; SI and BX rows 0 and 16 of a block of a, which
// begins at R11; DX in b, R13 a panel's size; R10 in c, whose panel begins at
// R14.
func (f *file) amxDot(name string, multiply func(dst, a, b int)) {
	f.function(name, "dotArgs", "Any rows and panels; units is a multiple of 16. Rows are read, and sums written, up to a multiple of 16.")
	f.op("LEAQ tiles<>(SB), AX")
	f.op("BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // LDTILECFG (AX)")
	f.op("MOVQ 56(DI), R15")
	f.op("MOVQ 32(DI), DX")
	f.op("MOVQ 40(DI), R13")
	f.op("SHLQ $7, R13")
	f.op("MOVQ 0(DI), R14")
	f.op("MOVQ 8(DI), AX")
	f.op("MOVQ 24(DI), R8")
	f.op("MOVQ $%d, CX", panelBytes)
	f.label("panel")
	f.op("MOVQ 48(DI), R9")
	f.op("MOVQ 16(DI), R11")
	f.op("MOVQ R14, R10")
	f.op("JMP block")
	f.label("again")
	f.op("SUBQ R13, DX")
	f.label("block")
	f.op("MOVQ R11, SI")
	f.op("MOVQ 40(DI), R12")
	f.op("CMPQ R9, $16")
	f.op("JLE half")
	f.amxBlock("whole", 2, multiply)
	f.op("SUBQ $32, R9")
	f.op("JG again")
	f.op("JMP next")
	f.label("half")
	f.amxBlock("narrow", 1, multiply)
	f.label("next")
	f.op("ADDQ $%d, R14", panelBytes)
	f.op("SUBQ $1, R15")
	f.op("JNZ panel")
	f.op("BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0 // TILERELEASE")
	f.end()
}

// amxBlock computes and stores one or two heights of 16 rows.
func (f *file) amxBlock(label string, heights int, multiply func(dst, a, b int)) {
	f.op("MOVQ R8, BX")
	f.op("SHLQ $4, BX")
	f.op("ADDQ SI, BX")
	for sum := range 2 * heights {
		f.tilezero(sum)
	}
	f.aligned(label)
	f.tileload(6, regDX, regCX, 0)
	f.tileload(4, regSI, regR8, 0)
	multiply(0, 4, 6)
	f.tileload(7, regDX, regCX, 64)
	multiply(1, 4, 7)
	if heights == 2 {
		f.tileload(5, regBX, regR8, 0)
		multiply(2, 5, 6)
		multiply(3, 5, 7)
		f.op("ADDQ $64, BX")
	}
	f.op("ADDQ $64, SI")
	f.op("ADDQ $%d, DX", 16*panelBytes)
	f.op("SUBQ $16, R12")
	f.op("JNZ %s", label)
	f.amxStore(heights)
}

// amxStore stores the sums and moves R10 and R11 to the next rows.
func (f *file) amxStore(heights int) {
	f.op("MOVQ AX, BX")
	f.op("SHLQ $4, BX")
	f.op("MOVQ R8, R12")
	f.op("SHLQ $%d, R12", 3+heights)
	f.op("ADDQ R12, R11")
	f.op("MOVQ R10, SI")
	for height := range heights {
		f.tilestore(2*height, regSI, regAX, 0)
		f.tilestore(2*height+1, regSI, regAX, 64)
		f.op("ADDQ BX, SI")
	}
	f.op("MOVQ SI, R10")
}
