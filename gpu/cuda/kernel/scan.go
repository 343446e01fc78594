//go:build nvidia

package kernel

import (
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
)

// Codes are rows of Words·32 bits in blocks of 32, word by word, with a factor
// (float32) each: see kernels/cuda/scan.cu.
type Codes struct {
	Bits, Factors cu.DevicePtr
	Words, Count  int
}

// Quantized are queries of 4 bits a dimension: bit planes, four words for each
// word of a code, and three float32 a query.
type Quantized struct {
	Planes, Numbers cu.DevicePtr
	Count           int
}

const scanQueries = 16 // of a block

// Scan finds each query's K best rows by estimated inner product among those allowed.
func (s *Set) Scan(in cu.Stream, a Answer, c Codes, q Quantized, allowed Allowed) error {
	shared := scanQueries * (topBytes + 16*c.Words)
	if a.K < 1 || a.K > MostResults || shared > s.shared {
		return fmt.Errorf("kernel: a scan for %d results of %d dimensions: it is for 1 to %d results", a.K, 32*c.Words, MostResults)
	}
	blocks := s.blocks(c.Count, 256, shared)
	err := driver.Launch(s.functions["scan"], in, driver.Size{X: uint32(blocks), Y: ceil(q.Count, scanQueries)}, driver.Size{X: 256}, shared,
		uint64(a.Candidates), uint64(c.Bits), uint64(c.Factors), uint64(q.Planes), uint64(q.Numbers), uint64(allowed.Bits),
		driver.Int(c.Words), driver.Int(allowed.Words), driver.Int(c.Count), driver.Int(q.Count), driver.Int(a.K))
	if err != nil {
		return err
	}
	return s.merge(in, a, blocks, q.Count)
}
