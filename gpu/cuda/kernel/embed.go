//go:build nvidia

package kernel

import (
	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
)

// Norm is a layer normalisation: gain and bias are float32.
type Norm struct {
	Gain, Bias cu.DevicePtr
	Epsilon    float32
}

// Tables are a model's embeddings, rows of bfloat16; Position and Type may be 0.
type Tables struct {
	Word, Position, Type cu.DevicePtr
	Norm                 Norm
	Width                int // even, 1024 at most
}

// Embed sets out (tokens × Width, bfloat16) to the normalised sum of the rows
// of each token's id, position and type (int32 each).
func (s *Set) Embed(in cu.Stream, out cu.DevicePtr, t Tables, ids, positions, types cu.DevicePtr, tokens int) error {
	return driver.Launch(s.functions["embed"], in, driver.Size{X: ceil(tokens, 4)}, driver.Size{X: 128}, 0,
		uint64(out), uint64(ids), uint64(positions), uint64(types), uint64(t.Word), uint64(t.Position), uint64(t.Type),
		uint64(t.Norm.Gain), uint64(t.Norm.Bias), driver.Float(t.Norm.Epsilon), driver.Int(tokens), driver.Int(t.Width))
}
