package main

// norms writes the functions on rows of floats that precede a quantisation.
func (f *file) norms() {
	f.norm("addNormAVX512", true)
	f.norm("normAVX512", false)
	f.add()
	f.softly(f.narrow)
	f.widen("widenInt8AVX512", 16, func() {
		f.op("VPMOVSXBD (SI), Z0")
		f.op("VCVTDQ2PS Z0, Z0")
		f.op("VMULPS Z1, Z0, Z0")
	})
	f.widen("widenBF16AVX512", 32, func() {
		f.op("VPMOVZXWD (SI), Z0")
		f.op("VPSLLD $16, Z0, Z0")
	})
}

// widen makes floats of 16 numbers, which have size bytes, at a time.
func (f *file) widen(name string, size int, convert func()) {
	f.function(name, "widenArgs", "n is a multiple of 16.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 8(DI), SI")
	f.op("MOVQ 16(DI), CX")
	f.op("VBROADCASTSS 24(DI), Z1")
	f.label("loop")
	convert()
	f.op("VMOVUPS Z0, (DX)")
	f.op("ADDQ $%d, SI", size)
	f.op("ADDQ $64, DX")
	f.op("SUBQ $16, CX")
	f.op("JNZ loop")
	f.end()
}

// add writes dst += src.
func (f *file) add() {
	f.function("addAVX512", "addArgs", "n is a multiple of 16.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 8(DI), SI")
	f.op("MOVQ 16(DI), CX")
	f.label("loop")
	f.op("VMOVUPS (SI), Z0")
	f.op("VADDPS (DX), Z0, Z0")
	f.op("VMOVUPS Z0, (DX)")
	f.op("ADDQ $64, SI")
	f.op("ADDQ $64, DX")
	f.op("SUBQ $16, CX")
	f.op("JNZ loop")
	f.end()
}

// narrow rounds floats to bfloat16.
func (f *file) narrow() {
	f.function(f.named("roundBF16"), "addArgs", "n is a multiple of 32.")
	f.op("MOVQ 0(DI), DX")
	f.op("MOVQ 8(DI), SI")
	f.op("MOVQ 16(DI), CX")
	f.label("loop")
	f.op("VMOVUPS (SI), Z0")
	f.op("VMOVUPS 64(SI), Z1")
	f.roundPair(2, 0, 1)
	f.op("VMOVUPS Z2, (DX)")
	f.op("ADDQ $128, SI")
	f.op("ADDQ $64, DX")
	f.op("SUBQ $32, CX")
	f.op("JNZ loop")
	f.end()
}

// norm normalises x's rows, to which y's are added first if there are any.
// Three passes over a row, which the first-level cache holds.
func (f *file) norm(name string, add bool) {
	f.function(name, "normArgs", "columns is a multiple of 64.")
	f.op("MOVQ 0(DI), SI")
	f.op("MOVQ 8(DI), DX")
	f.op("MOVQ 16(DI), R8")
	f.op("MOVQ 24(DI), R9")
	f.op("MOVQ 40(DI), R10")
	f.op("MOVQ 32(DI), R11")
	f.op("SHLQ $2, R11")
	f.op("VBROADCASTSS 48(DI), Z31")
	f.op("VBROADCASTSS 52(DI), Z30")
	f.broadcast(29, "one", 1)
	f.label("row")
	f.clearSums()
	f.pass("sum", func(offset, z int) {
		f.op("VMOVUPS %d(SI)(AX*1), Z%d", offset, 8+z)
		if add {
			f.op("VADDPS %d(DX)(AX*1), Z%d, Z%d", offset, 8+z, 8+z)
			f.op("VMOVUPS Z%d, %d(SI)(AX*1)", 8+z, offset)
		}
		f.op("VADDPS Z%d, Z%d, Z%d", 8+z, z, z)
	})
	f.mean(16)
	f.clearSums()
	f.pass("square", func(offset, z int) {
		f.op("VMOVUPS %d(SI)(AX*1), Z%d", offset, 8+z)
		f.op("VSUBPS Z16, Z%d, Z%d", 8+z, 8+z)
		f.op("VFMADD231PS Z%d, Z%d, Z%d", 8+z, 8+z, z)
	})
	f.mean(17)
	f.op("VADDSS X31, X17, X17")
	f.op("VSQRTSS X17, X17, X17")
	f.op("VDIVSS X17, X29, X17")
	f.op("VBROADCASTSS X17, Z17")
	f.pass("scale", func(offset, z int) {
		f.op("VMOVUPS %d(SI)(AX*1), Z%d", offset, 8+z)
		f.op("VSUBPS Z16, Z%d, Z%d", 8+z, 8+z)
		f.op("VMULPS %d(R8)(AX*1), Z17, Z%d", offset, z)
		f.op("VFMADD213PS %d(R9)(AX*1), Z%d, Z%d", offset, z, 8+z)
		f.op("VMOVUPS Z%d, %d(SI)(AX*1)", 8+z, offset)
	})
	f.op("ADDQ R11, SI")
	f.op("ADDQ R11, DX")
	f.op("SUBQ $1, R10")
	f.op("JNZ row")
	f.end()
}

func (f *file) clearSums() {
	for z := range 4 {
		f.op("VPXORD Z%d, Z%d, Z%d", z, z, z)
	}
}

// mean sets z to the sums Z0 to Z3 times Z30.
func (f *file) mean(z int) {
	f.op("VADDPS Z1, Z0, Z0")
	f.op("VADDPS Z3, Z2, Z2")
	f.op("VADDPS Z2, Z0, Z0")
	f.reduce("VADDPS", 0, 1)
	f.op("VMULPS Z30, Z0, Z%d", z)
}

// pass visits a row of R11 bytes by offset AX, four registers at a time.
func (f *file) pass(label string, visit func(offset, z int)) {
	f.op("XORQ AX, AX")
	f.label(label)
	for z := range 4 {
		visit(64*z, z)
	}
	f.op("ADDQ $256, AX")
	f.op("CMPQ AX, R11")
	f.op("JLT %s", label)
}
