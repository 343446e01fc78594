package main

// packs writes what lays keys and values out as panels of a product.
func (f *file) packs() {
	f.packKeys()
	f.packValues()
}

// packKeys transposes rows of bfloat16 pairs, 16 rows of 16 pairs at a time.
func (f *file) packKeys() {
	f.function("packKeysAVX512", "packArgs", "rows is a multiple of 32, columns one of 32; rows are read up to that multiple.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 8(DI), SI")
	f.op("MOVQ 16(DI), R8")
	f.op("MOVQ 24(DI), CX")
	f.op("MOVQ 32(DI), R9")
	f.op("SHRQ $5, R9")
	f.op("MOVQ R8, R12")
	f.op("SHLQ $4, R12")
	f.label("panel")
	f.op("MOVQ DX, R13")
	for half := range 2 {
		name := []string{"left", "right"}[half]
		f.op("MOVQ SI, BX")
		f.op("MOVQ R13, DX")
		f.op("MOVQ R9, R10")
		f.label(name)
		f.op("MOVQ BX, AX")
		for z := range 16 {
			f.op("VMOVUPS (AX), Z%d", z)
			f.op("ADDQ R8, AX")
		}
		for i, z := range f.transpose() {
			f.op("VMOVUPS Z%d, %d(DX)", z, panelBytes*i+64*half)
		}
		f.op("ADDQ $64, BX")
		f.op("ADDQ $%d, DX", 16*panelBytes)
		f.op("SUBQ $1, R10")
		f.op("JNZ %s", name)
		f.op("ADDQ R12, SI")
	}
	f.op("SUBQ $32, CX")
	f.op("JNZ panel")
	f.end()
}

// transpose takes 16 × 16 words in Z0 to Z15 and returns the registers of the
// transposed rows.
func (f *file) transpose() []int {
	a, b := make([]int, 16), make([]int, 16)
	for i := range 16 {
		a[i], b[i] = i, 16+i
	}
	for i := range 8 {
		f.op("VUNPCKLPS Z%d, Z%d, Z%d", a[2*i+1], a[2*i], b[2*i])
		f.op("VUNPCKHPS Z%d, Z%d, Z%d", a[2*i+1], a[2*i], b[2*i+1])
	}
	for i := range 4 {
		p, q := b[4*i:], a[4*i:]
		f.op("VUNPCKLPD Z%d, Z%d, Z%d", p[2], p[0], q[0])
		f.op("VUNPCKHPD Z%d, Z%d, Z%d", p[2], p[0], q[1])
		f.op("VUNPCKLPD Z%d, Z%d, Z%d", p[3], p[1], q[2])
		f.op("VUNPCKHPD Z%d, Z%d, Z%d", p[3], p[1], q[3])
	}
	for j := range 4 {
		f.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", a[4+j], a[j], b[j])
		f.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", a[4+j], a[j], b[4+j])
		f.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", a[12+j], a[8+j], b[8+j])
		f.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", a[12+j], a[8+j], b[12+j])
	}
	for j := range 4 {
		f.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", b[8+j], b[j], a[j])
		f.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", b[8+j], b[j], a[8+j])
		f.op("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", b[12+j], b[4+j], a[4+j])
		f.op("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", b[12+j], b[4+j], a[12+j])
	}
	return a
}

// packValues interleaves pairs of rows, 32 columns per panel.
func (f *file) packValues() {
	f.function("packValuesAVX512", "packArgs", "columns is a multiple of 32; rows are any, zero rows fill up to a multiple of 32.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 16(DI), R8")
	f.op("MOVQ 24(DI), CX")
	f.op("MOVQ 32(DI), R9")
	f.op("SHRQ $5, R9")
	f.op("MOVQ 8(DI), BX")
	f.op("VPXORD Z31, Z31, Z31")
	f.label("panel")
	f.op("MOVQ BX, SI")
	f.op("MOVQ CX, R10")
	f.op("SHRQ $1, R10")
	f.op("JZ odd")
	f.label("pair")
	f.op("VPMOVZXWD (SI), Z0")
	f.op("VPMOVZXWD 32(SI), Z1")
	f.op("VPMOVZXWD (SI)(R8*1), Z2")
	f.op("VPMOVZXWD 32(SI)(R8*1), Z3")
	f.op("VPSLLD $16, Z2, Z2")
	f.op("VPSLLD $16, Z3, Z3")
	f.op("VPORD Z2, Z0, Z0")
	f.op("VPORD Z3, Z1, Z1")
	f.op("VMOVUPS Z0, (DX)")
	f.op("VMOVUPS Z1, 64(DX)")
	f.op("LEAQ (SI)(R8*2), SI")
	f.op("ADDQ $%d, DX", panelBytes)
	f.op("SUBQ $1, R10")
	f.op("JNZ pair")
	f.label("odd")
	f.op("MOVQ CX, R10")
	f.op("NEGQ R10")
	f.op("ANDQ $31, R10")
	f.op("SHRQ $1, R10")
	f.op("TESTQ $1, CX")
	f.op("JZ zeros")
	f.op("VPMOVZXWD (SI), Z0")
	f.op("VPMOVZXWD 32(SI), Z1")
	f.op("VMOVUPS Z0, (DX)")
	f.op("VMOVUPS Z1, 64(DX)")
	f.op("ADDQ $%d, DX", panelBytes)
	f.label("zeros")
	f.op("TESTQ R10, R10")
	f.op("JZ filled")
	f.label("zero")
	f.op("VMOVUPS Z31, (DX)")
	f.op("VMOVUPS Z31, 64(DX)")
	f.op("ADDQ $%d, DX", panelBytes)
	f.op("SUBQ $1, R10")
	f.op("JNZ zero")
	f.label("filled")
	f.op("ADDQ $64, BX")
	f.op("SUBQ $1, R9")
	f.op("JNZ panel")
	f.end()
}
