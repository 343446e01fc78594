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

// Tiles is how many blocks a sequence of so many tokens takes.
func Tiles(tokens int) int { return int(ceil(tokens, queryTile)) }

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

// Heads is how a layer attends: Count heads, Size numbers of a row apart, of
// which Used are in use and the others zero; Size is 32 or 64. Tokens further
// apart than Window do not see each other (0: all do). Relative (0: none) is
// what scores get by distance, Count × (2·Zero + 1) float32, times log₂e.
type Heads struct {
	Count, Size, Used int
	Window            int
	Relative          cu.DevicePtr
	Zero              int // the farthest distance in Relative
}

// HeadSize is the Size for heads of so many numbers.
func HeadSize(used int) (int, error) {
	switch {
	case used <= 32:
		return 32, nil
	case used <= 64:
		return 64, nil
	}
	return 0, fmt.Errorf("kernel: %w: heads of %d", model.ErrUnsupported, used)
}

// Attention sets out (tokens × Count·Size) to softmax(q·kᵀ/√Used + relative)·v
// by sequence and head; a row of qkv holds a token's query, key and value. Both
// are bfloat16. tiles is what AppendTiles made, count numbers.
func (s *Set) Attention(in cu.Stream, out, qkv, tiles cu.DevicePtr, count int, h Heads) error {
	scale := driver.Float(float32(math.Log2E / math.Sqrt(float64(h.Used))))
	grid, block, shared := driver.Size{X: uint32(count / 3), Y: uint32(h.Count)}, driver.Size{X: 128}, 5*queryTile*2*h.Size
	if h.Window == 0 && h.Relative == 0 {
		name := "attention_32"
		if h.Size == 64 {
			name = "attention_64"
		}
		return driver.Launch(s.functions[name], in, grid, block, shared, uint64(out), uint64(qkv), uint64(tiles), driver.Int(h.Count), scale)
	}
	name := "attention_32_near"
	if h.Size == 64 {
		name = "attention_64_near"
	}
	return driver.Launch(s.functions[name], in, grid, block, shared, uint64(out), uint64(qkv), uint64(tiles), driver.Int(h.Count), scale,
		driver.Int(h.Window), uint64(h.Relative), driver.Int(h.Zero))
}

// Turn is the angles of a rotary embedding, Half float32 for each position.
type Turn struct {
	Cos, Sin cu.DevicePtr
	Half     int // half of what is in use of a head; even
}

// Rope turns the queries and keys of qkv, whose rows Attention takes, by the
// angles of their positions (int32).
func (s *Set) Rope(in cu.Stream, qkv, positions cu.DevicePtr, t Turn, h Heads, tokens int) error {
	return driver.Launch(s.functions["rope"], in, driver.Size{X: uint32(tokens)}, driver.Size{X: 128}, 0,
		uint64(qkv), uint64(positions), uint64(t.Cos), uint64(t.Sin), driver.Int(h.Count), driver.Int(h.Size), driver.Int(t.Half))
}
