//go:build nvidia

package kernel

import (
	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
)

// Pooling is the kernel's number of a pooling.
type Pooling int

// The poolings of kernels/cuda/pool.cu.
const (
	MeanPooling Pooling = iota
	FirstPooling
	LastPooling
)

// Pool sets out (sequences × width, float32) to each sequence's pooled vector,
// of unit length if unit is set, and lengths (0: not wanted) to what its length
// was before. x is tokens × width of bfloat16, offsets int32, one more than
// there are sequences. width is even, 1024 at most.
func (s *Set) Pool(in cu.Stream, out, lengths, x, offsets cu.DevicePtr, p Pooling, unit bool, sequences, width int) error {
	scaled := 0
	if unit {
		scaled = 1
	}
	return driver.Launch(s.functions["pool"], in, driver.Size{X: uint32(sequences)}, driver.Size{X: 128}, 0,
		uint64(out), uint64(lengths), uint64(x), uint64(offsets), driver.Int(int(p)), driver.Int(scaled), driver.Int(width))
}

// Head is a classifier's, in float32; Norm.Gain may be 0. In is 1024 at most.
type Head struct {
	Dense Dense // In × In
	Norm  Norm
	Out   Dense // labels × In, without an activation
}

// Classify sets logits (sequences × labels) to what h says of pooled vectors, float32 both.
func (s *Set) Classify(in cu.Stream, logits, pooled cu.DevicePtr, h Head, sequences int) error {
	return driver.Launch(s.functions["classify"], in, driver.Size{X: uint32(sequences)}, driver.Size{X: 256}, 0,
		uint64(logits), uint64(pooled), uint64(h.Dense.Weight), uint64(h.Dense.Bias), driver.Int(int(h.Dense.Activation)),
		uint64(h.Norm.Gain), uint64(h.Norm.Bias), driver.Float(h.Norm.Epsilon),
		uint64(h.Out.Weight), uint64(h.Out.Bias), driver.Int(h.Out.Out), driver.Int(h.Dense.In))
}
