//go:build nvidia

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
// and Out is even; of float32 for MultiplyF32. Bias is float32. Kernels are for
// Multiply and MultiplyGated.
type Dense struct {
	Weight, Bias cu.DevicePtr
	In, Out      int
	Activation   Activation
	Kernels      Choice
}

// Variant is a kernel for a product, the tile of y that a block has, and what
// it takes: threads, bytes of dynamic shared memory, and x and w by address or
// as tensor maps.
type Variant struct {
	Name            string
	rows, columns   int
	threads, shared int
	mapped          bool
}

// variants are those for few rows and for many, by compute capability: within
// one they sum in the same order, so that a batch's size changes no bit.
var (
	variants80 = [2]Variant{{"gemm_2", 32, 64, 128, 48 << 10, false}, {"gemm_1", 128, 128, 256, 48 << 10, false}}
	variants90 = [2]Variant{{"gemm_4", 64, 64, 128, 80 << 10, false}, {"gemm_3", 128, 128, 256, 96 << 10, false}}
	float32s   = Variant{"gemm_f32", 64, 64, 256, 0, false}
)

// tensorVariant is another one for many rows on 9.0, with the bits of gemm_3. It
// serves where a trial has shown it to be faster.
var tensorVariant = Variant{"gemm_5", 128, 128, 288, 96<<10 + 48, true}

// fewRows is where the tiles for few rows win, as long as nothing is chosen: a
// grid of the large ones would leave most of a device idle.
const fewRows = 512

// Multiply sets y to d of x, plus residual if that is not 0; x is rows × In, y
// and residual are rows × Out, of bfloat16.
func (s *Set) Multiply(in cu.Stream, y, x, residual cu.DevicePtr, d Dense, rows int) error {
	return s.multiply(s.product(d.Kernels, rows), in, y, x, 0, residual, d, rows)
}

// MultiplyGated sets y to d of x, times factor, which is rows × Out and may be y.
func (s *Set) MultiplyGated(in cu.Stream, y, x, factor cu.DevicePtr, d Dense, rows int) error {
	return s.multiply(s.product(d.Kernels, rows), in, y, x, factor, 0, d, rows)
}

// MultiplyF32 is Multiply in float32, for any shape.
func (s *Set) MultiplyF32(in cu.Stream, y, x, residual cu.DevicePtr, d Dense, rows int) error {
	return s.multiply(float32s, in, y, x, 0, residual, d, rows)
}

// Variants are the kernels for products that this device can run, the plainest
// first; all give the same bits.
func (s *Set) Variants() []Variant { return s.variants }

// MultiplyBy is Multiply by a kernel of the caller's choice.
func (s *Set) MultiplyBy(v Variant, in cu.Stream, y, x, residual cu.DevicePtr, d Dense, rows int) error {
	return s.multiply(v, in, y, x, 0, residual, d, rows)
}

func (s *Set) product(c Choice, rows int) Variant {
	for _, of := range c {
		if rows <= of.upTo {
			return of.variant
		}
	}
	if rows < fewRows {
		return s.products[0]
	}
	return s.products[1]
}

func (s *Set) multiply(v Variant, in cu.Stream, y, x, factor, residual cu.DevicePtr, d Dense, rows int) error {
	grid, block := driver.Size{X: ceil(d.Out, v.columns), Y: ceil(rows, v.rows)}, driver.Size{X: uint32(v.threads)}
	activation, r, out, depth := driver.Int(int(d.Activation)), driver.Int(rows), driver.Int(d.Out), driver.Int(d.In)
	if !v.mapped {
		return driver.Launch(s.functions[v.Name], in, grid, block, v.shared,
			uint64(y), uint64(x), uint64(d.Weight), uint64(d.Bias), uint64(factor), uint64(residual), activation, r, out, depth)
	}
	words := [40]uint64{uint64(y), uint64(d.Bias), uint64(factor), uint64(residual), activation, r, out, depth}
	for i, m := range [2]driver.Matrix{
		{Address: x, Rows: rows, Columns: d.In, Stride: 2 * d.In, BoxRows: v.rows, BoxColumns: 64},
		{Address: d.Weight, Rows: d.Out, Columns: d.In, Stride: 2 * d.In, BoxRows: v.columns, BoxColumns: 64},
	} {
		t, err := driver.NewTensorMap(m)
		if err != nil {
			return fmt.Errorf("kernel: %s: %w", v.Name, err)
		}
		copy(words[8+len(t)*i:], t[:])
	}
	return driver.Launch(s.functions[v.Name], in, grid, block, v.shared, words[:]...)
}
