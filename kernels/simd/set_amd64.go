package simd

import (
	"golang.org/x/sys/cpu"

	"sluice/kernels/ref"
)

func accelerated() (sets []*Set) {
	if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
		avx512 := Set{Level: "avx512", GELU: gelu512, Softmax: softmax512, tile: tile512, narrow: portableNarrow()}
		if hasNarrow512() {
			avx512.Level, avx512.narrow = "avx512-vnni-bf16", narrow512()
		}
		if amx := avx512; hasNarrow512() && hasAMX() {
			amx.Level, amx.narrow = "amx", narrowAMX()
			sets = append(sets, &amx)
		}
		sets = append(sets, &avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &Set{Level: "avx2", GELU: ref.GELU, Softmax: ref.Softmax, tile: tile256, narrow: portableNarrow()})
	}
	return sets
}
