package simd

//go:generate go run ./internal/gen .

import "sluice/kernels/ref"

// Set is the kernels for one instruction set. It is stateless.
type Set struct {
	// Level names the instruction set: "amx",
	// "avx512-vnni-bf16", "avx512-vnni", "avx512", "avx2" or "go".
	Level string

	// GELU, GELUTanh, SiLU and Softmax compute what ref's do, to about float32's
	// precision.
	GELU, GELUTanh, SiLU func(x []float32)
	Softmax              func(x []float32, scale float32)

	tile   tileFunc
	maxSim simFunc
	narrow narrowSet
	search searchSet
}

// portable runs everywhere.
func portable() *Set {
	return &Set{Level: "go", GELU: ref.GELU, GELUTanh: ref.GELUTanh, SiLU: ref.SiLU, Softmax: ref.Softmax,
		tile: tileGo, narrow: portableNarrow(), maxSim: maxSimGo, search: portableSearch()}
}

// Best is the fastest set that this CPU can run.
func Best() *Set { return Supported()[0] }

// Supported lists the sets that this CPU can run, the fastest first.
func Supported() []*Set { return append(accelerated(), portable()) }
