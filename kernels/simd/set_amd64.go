package simd

import (
	"golang.org/x/sys/cpu"

	"sluice/kernels/ref"
)

func accelerated() (sets []*Set) {
	if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
		sets = append(sets, &Set{Level: "avx512", GELU: gelu512, Softmax: softmax512, tile: tile512, maxSim: maxSim512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &Set{Level: "avx2", GELU: ref.GELU, Softmax: ref.Softmax, tile: tile256, maxSim: maxSim256})
	}
	return sets
}
