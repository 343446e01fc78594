package main

// rope turns heads of bfloat16 numbers, which lie one after another, by the
// same angles: element k of a head's first half and of its second are a plane's
// coordinates.
func (f *file) rope() {
	f.function(f.named("ropeAVX512"), "ropeArgs", "half is a multiple of 16.")
	f.op("MOVQ 0(DI), SI")
	f.op("MOVQ 8(DI), R8")
	f.op("MOVQ 16(DI), R9")
	f.op("MOVQ 24(DI), R10")
	f.op("MOVQ 32(DI), R11")
	f.label("head")
	f.op("XORQ AX, AX")
	f.op("LEAQ (SI)(R10*2), DX")
	f.label("plane")
	for z, half := range []string{"SI", "DX"} {
		f.op("VPMOVZXWD (%s)(AX*2), Z%d", half, z)
		f.op("VPSLLD $16, Z%d, Z%d", z, z)
	}
	f.op("VMOVUPS (R8)(AX*4), Z2")
	f.op("VMOVUPS (R9)(AX*4), Z3")
	f.op("VMULPS Z3, Z1, Z4")
	f.op("VFMSUB231PS Z2, Z0, Z4")
	f.op("VMULPS Z3, Z0, Z5")
	f.op("VFMADD231PS Z2, Z1, Z5")
	f.roundPair(6, 4, 5)
	f.op("VMOVDQU Y6, (SI)(AX*2)")
	f.op("VEXTRACTI64X4 $1, Z6, (DX)(AX*2)")
	f.op("ADDQ $16, AX")
	f.op("CMPQ AX, R10")
	f.op("JLT plane")
	f.op("LEAQ (DX)(R10*2), SI")
	f.op("SUBQ $1, R11")
	f.op("JNZ head")
	f.end()
}
