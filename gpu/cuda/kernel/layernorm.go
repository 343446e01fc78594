//go:build nvidia

package kernel

import (
	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
)

// LayerNorm sets out to the normalised x + residual, rows × width of bfloat16
// each; residual may be 0, and out may be one of them. width is even, 1024 at most.
func (s *Set) LayerNorm(in cu.Stream, out, x, residual cu.DevicePtr, n Norm, rows, width int) error {
	return driver.Launch(s.functions["layernorm"], in, driver.Size{X: ceil(rows, 4)}, driver.Size{X: 128}, 0,
		uint64(out), uint64(x), uint64(residual), uint64(n.Gain), uint64(n.Bias), driver.Float(n.Epsilon), driver.Int(rows), driver.Int(width))
}
