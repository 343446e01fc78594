//go:build nvidia

package kernel

import (
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu"
	"sluice/gpu/cuda/driver"
)

// MaxSim sets scores (passages, float32) to each passage's score for a query of
// tokens × dims float32: see kernels/ref.MaxSim. codes are its code rows;
// passage i has rows offsets[i] to offsets[i+1] (int32). dims is a multiple of 32.
func (s *Set) MaxSim(in cu.Stream, scores, query cu.DevicePtr, tokens, dims int, codes, offsets cu.DevicePtr, passages int) error {
	shared := 4 * tokens * (dims + 1)
	if dims%32 != 0 || shared > s.shared {
		return fmt.Errorf("kernel: %w: late interaction of %d tokens of %d dimensions: the device has no room for them", gpu.ErrInput, tokens, dims)
	}
	return driver.Launch(s.functions["maxsim"], in, driver.Size{X: uint32(passages)}, driver.Size{X: 128}, shared,
		uint64(scores), uint64(query), driver.Int(tokens), driver.Int(dims), uint64(codes), uint64(offsets))
}
