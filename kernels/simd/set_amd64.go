package simd

import (
	"golang.org/x/sys/cpu"

	"sluice/kernels/ref"
)

func accelerated() (sets []*Set) {
	if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
		sets = append(sets, accelerated512()...)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &Set{Level: "avx2", GELU: ref.GELU, Softmax: ref.Softmax, tile: tile256, maxSim: maxSim256, narrow: portableNarrow(), search: search256()})
	}
	return sets
}

// accelerated512 differ in how they compute on 8- and 16-bit numbers.
func accelerated512() (sets []*Set) {
	add := func(level string, narrow narrowSet) {
		sets = append(sets, &Set{Level: level, GELU: gelu512, Softmax: softmax512, tile: tile512, maxSim: maxSim512, narrow: narrow, search: search512()})
	}
	if !hasVNNI() {
		add("avx512", portableNarrow())
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
