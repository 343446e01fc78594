package cpu

import (
	"sluice/kernels/ref"
	"sluice/kernels/simd"
	"sluice/model"
)

// activation is the function that a names; nil if it changes nothing.
func activation(a model.Activation, kernels *simd.Set) func(x []float32) {
	switch a {
	case model.GELU:
		return kernels.GELU
	case model.GELUTanh:
		return kernels.GELUTanh
	case model.SiLU:
		return kernels.SiLU
	case model.ReLU:
		return ref.ReLU
	case model.Tanh:
		return ref.Tanh
	}
	return nil
}
