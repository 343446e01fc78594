package main

import "fmt"

// maxRows is the most rows whose sums fit the registers, two for each.
const maxRows = 12

// rowPointers address three rows each.
var rowPointers = []string{"SI", "AX", "BX", "R9"}

// dots writes, for each number of rows, the products of rows of a with one
// panel of b, in units of 4 bytes of depth: 4 × u8 by 4 × s8, or 2 × bf16.
func (f *file) dots() {
	for rows := 1; rows <= maxRows; rows++ {
		f.dot(fmt.Sprintf("int8Dot%d", rows), rows, func(sum, a, b int) { f.op("VPDPBUSD Z%d, Z%d, Z%d", b, a, sum) })
	}
	for rows := 1; rows <= maxRows; rows++ {
		f.dot(fmt.Sprintf("bf16Dot%d", rows), rows, func(sum, a, b int) { f.vdpbf16ps(sum, a, b) })
	}
}

func (f *file) dot(name string, rows int, multiply func(sum, a, b int)) {
	const unroll = 4
	f.function(name, "dotArgs", fmt.Sprintf("%d × 32 sums; units is a multiple of %d.", rows, unroll))
	f.dotPrologue(rows)
	f.aligned("loop")
	for unit := range unroll {
		f.op("VMOVUPS %d(DX), Z24", unit*panelBytes)
		f.op("VMOVUPS %d(DX), Z25", unit*panelBytes+64)
		for row := range rows {
			a := 26 + (unit*rows+row)%6
			f.op("VPBROADCASTD %s, Z%d", rowAddress(row, unit*4), a)
			multiply(2*row, a, 24)
			multiply(2*row+1, a, 25)
		}
	}
	for _, pointer := range rowPointers[:(rows+2)/3] {
		f.op("ADDQ $%d, %s", 4*unroll, pointer)
	}
	f.op("ADDQ $%d, DX", unroll*panelBytes)
	f.op("SUBQ $%d, CX", unroll)
	f.op("JNZ loop")
	f.dotEpilogue(rows)
}

func (f *file) dotEpilogue(rows int) {
	for row := range rows {
		f.op("VMOVUPS Z%d, (R10)", 2*row)
		f.op("VMOVUPS Z%d, 64(R10)", 2*row+1)
		f.op("ADDQ R11, R10")
	}
	f.end()
}

func (f *file) dotPrologue(rows int) {
	f.op("MOVQ 0(DI), R10")
	f.op("MOVQ 8(DI), R11")
	f.op("MOVQ 16(DI), SI")
	f.op("MOVQ 24(DI), R8")
	f.op("MOVQ 32(DI), DX")
	f.op("MOVQ 40(DI), CX")
	if rows > 3 {
		f.op("LEAQ (R8)(R8*2), R12")
	}
	for i := 1; i < (rows+2)/3; i++ {
		f.op("LEAQ (%s)(R12*1), %s", rowPointers[i-1], rowPointers[i])
	}
	for z := range 2 * rows {
		f.op("VPXORD Z%d, Z%d, Z%d", z, z, z)
	}
}

// rowAddress is the operand at offset bytes into a row of a.
func rowAddress(row, offset int) string {
	address := fmt.Sprintf("%d(%s)", offset, rowPointers[row/3])
	if row%3 > 0 {
		address += fmt.Sprintf("(R8*%d)", row%3)
	}
	return address
}
