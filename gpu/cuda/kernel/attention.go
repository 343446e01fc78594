//go:build nvidia

package kernel

import (
	"fmt"
	"math"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
	"sluice/model"
)

// queryTile is how many queries a block of attention has.
const queryTile = 64

// AppendTiles appends the list of work that Attention takes: three numbers for
// each 64 tokens of a sequence. Sequence i is tokens offsets[i] to offsets[i+1].
func AppendTiles(tiles []int32, offsets []int) []int32 {
	for i := range len(offsets) - 1 {
		for first := offsets[i]; first < offsets[i+1]; first += queryTile {
			tiles = append(tiles, int32(first), int32(offsets[i]), int32(offsets[i+1]))
		}
	}
	return tiles
}

// Attention sets out (tokens × heads·size) to softmax(q·kᵀ/√size)·v by sequence
// and head; a row of qkv holds a token's query, key and value. Both are
// bfloat16; size is 32 or 64. tiles is what AppendTiles made, count numbers.
func (s *Set) Attention(in cu.Stream, out, qkv, tiles cu.DevicePtr, count, heads, size int) error {
	name := "attention_32"
	switch size {
	case 32:
	case 64:
		name = "attention_64"
	default:
		return fmt.Errorf("kernel: %w: heads of %d", model.ErrUnsupported, size)
	}
	scale := float32(math.Log2E / math.Sqrt(float64(size)))
	return driver.Launch(s.functions[name], in, driver.Size{X: uint32(count / 3), Y: uint32(heads)}, driver.Size{X: 128}, 5*queryTile*2*size,
		uint64(out), uint64(qkv), uint64(tiles), driver.Int(heads), driver.Float(scale))
}
