//go:build cuda

package kernel

import (
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
	"sluice/model"
)

// Activation is the kernels' number of a function between two matrices.
type Activation int

var activations = []model.Activation{model.Identity, model.GELU, model.GELUTanh, model.SiLU, model.ReLU, model.Tanh}

// ActivationOf finds a model's.
func ActivationOf(a model.Activation) (Activation, error) {
	for i, known := range activations {
		if a == known {
			return Activation(i), nil
		}
	}
	return 0, fmt.Errorf("kernel: %w: activation %q", model.ErrUnsupported, a)
}

// Dense is an affine map and what follows it: activation(x·Weightᵀ + Bias).
// Weight is Out × In, of bfloat16 for Multiply, where In is a multiple of 8
// and Out is even; of float32 for MultiplyF32. Bias is float32.
type Dense struct {
	Weight, Bias cu.DevicePtr
	In, Out      int
	Activation   Activation
}

// fewRows is where the tiles for few rows win: a grid of the large ones would
// leave most of a device idle. To be measured on a device.
const fewRows = 512

// Multiply sets y to d of x, plus residual if that is not 0; x is rows × In, y
// and residual are rows × Out, of bfloat16.
func (s *Set) Multiply(in cu.Stream, y, x, residual cu.DevicePtr, d Dense, rows int) error {
	name, tile, threads := "gemm_1", [2]int{128, 128}, 256
	if rows < fewRows {
		name, tile, threads = "gemm_2", [2]int{32, 64}, 128
	}
	return s.multiply(name, in, tile, threads, 48<<10, y, x, residual, d, rows)
}

// MultiplyF32 is the same in float32, for any shape.
func (s *Set) MultiplyF32(in cu.Stream, y, x, residual cu.DevicePtr, d Dense, rows int) error {
	return s.multiply("gemm_f32", in, [2]int{64, 64}, 256, 0, y, x, residual, d, rows)
}

func (s *Set) multiply(name string, in cu.Stream, tile [2]int, threads, shared int, y, x, residual cu.DevicePtr, d Dense, rows int) error {
	return driver.Launch(s.functions[name], in, driver.Size{X: ceil(d.Out, tile[1]), Y: ceil(rows, tile[0])}, driver.Size{X: uint32(threads)}, shared,
		uint64(y), uint64(x), uint64(d.Weight), uint64(d.Bias), uint64(residual),
		driver.Int(int(d.Activation)), driver.Int(rows), driver.Int(d.Out), driver.Int(d.In))
}
