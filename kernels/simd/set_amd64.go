package simd

import (
	"golang.org/x/sys/cpu"
)

func accelerated() (sets []*Set) {
	if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
		sets = append(sets, accelerated512()...)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		plain := portable()
		plain.Level, plain.tile, plain.maxSim, plain.narrow, plain.search = "avx2", tile256, maxSim256, narrowAVX2(), search256()
		sets = append(sets, plain)
	}
	return sets
}

// accelerated512 differ in how they compute on 8- and 16-bit numbers.
func accelerated512() (sets []*Set) {
	add := func(level string, narrow narrowSet) {
		sets = append(sets, &Set{Level: level, GELU: gelu512, GELUTanh: geluTanh512, SiLU: silu512, Softmax: softmax512,
			tile: tile512, maxSim: maxSim512, narrow: narrow, search: search512()})
	}
	if !hasVNNI() {
		add("avx512", narrowAVX2())
		return sets
	}
	if cpu.X86.HasAVX512BF16 {
		if hasAMX() {
			add("amx", narrowAMX())
		}
		add("avx512-vnni-bf16", narrowBF16())
	}
	add("avx512-vnni", narrowVNNI())
	return sets
}
