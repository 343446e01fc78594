//go:build nvidia

package kernel

import (
	"fmt"

	"gorgonia.org/cu"

	"sluice/gpu/cuda/driver"
)

// MostResults is the largest k of a search.
const MostResults = 120

// Allowed is what each query may see: a bit a row, Words 32-bit words a query.
// With no words all queries share one bitmap. There is no way to leave it out.
type Allowed struct {
	Bits  cu.DevicePtr
	Words int
}

// Answer is where results go: rows (int32, −1 after the last) and scores
// (float32), K a query, the best first; of equal scores the smaller row.
// Candidates is room for CandidateBytes.
type Answer struct {
	Rows, Scores, Candidates cu.DevicePtr
	K                        int // 120 at most
}

// Vectors are rows of Width numbers: IEEE halves, Width a multiple of 8; or, if
// there are Scales (float32, one a row), signed bytes, Width a multiple of 16.
type Vectors struct {
	Data, Scales cu.DevicePtr
	Count, Width int
}

// blocks is how many share the rows: as many as fit a processor's shared
// memory, of which each takes so much.
func (s *Set) blocks(rows, rowsOfBlock, shared int) int {
	fit := min(mostBlocks, max(1, s.shared/(shared+declared)))
	return max(1, min(s.processors*fit, int(ceil(rows, rowsOfBlock))))
}

// mostBlocks is how many blocks of a search a processor runs at most.
const mostBlocks = 4

// CandidateBytes is the room that the answers of a search's blocks take.
func (s *Set) CandidateBytes(queries, k int) int { return 8 * mostBlocks * s.processors * queries * k }

// Search finds each query's K best rows by inner product among those allowed.
// Both kinds of vectors have the same Width, and scales or none.
func (s *Set) Search(in cu.Stream, a Answer, rows, queries Vectors, allowed Allowed) error {
	if a.K < 1 || a.K > MostResults {
		return fmt.Errorf("kernel: a search for %d results: 1 to %d are possible", a.K, MostResults)
	}
	name, parts := "search_f16", rows.Width/8
	if rows.Scales != 0 {
		name, parts = "search_i8", rows.Width/16
	}
	group, suffix := 64, "_64"
	if queries.Count <= 8 || searchShared(64, parts) > s.shared {
		group, suffix = 8, "_8"
	}
	if searchShared(group, parts) > s.shared {
		return fmt.Errorf("kernel: a search of %d dimensions: the device has no room for them", rows.Width)
	}
	shared := searchShared(group, parts)
	blocks := s.blocks(rows.Count, 128, shared)
	grid := driver.Size{X: uint32(blocks), Y: ceil(queries.Count, group)}
	f := s.functions[name+suffix]
	tail := [6]uint64{uint64(allowed.Bits), driver.Int(allowed.Words), driver.Int(rows.Count), driver.Int(queries.Count), driver.Int(parts), driver.Int(a.K)}
	var err error
	if rows.Scales != 0 {
		err = driver.Launch(f, in, grid, driver.Size{X: 256}, shared, uint64(a.Candidates), uint64(rows.Data), uint64(rows.Scales),
			uint64(queries.Data), uint64(queries.Scales), tail[0], tail[1], tail[2], tail[3], tail[4], tail[5])
	} else {
		err = driver.Launch(f, in, grid, driver.Size{X: 256}, shared, uint64(a.Candidates), uint64(rows.Data),
			uint64(queries.Data), tail[0], tail[1], tail[2], tail[3], tail[4], tail[5])
	}
	if err != nil {
		return err
	}
	return s.merge(in, a, blocks, queries.Count)
}

// topBytes is the size of a Top in kernels/cuda/top.cuh.
const topBytes = 8*128 + 16

// searchShared is a group of queries, three stages of rows, and what was found.
func searchShared(group, parts int) int {
	return group*int(ceil(parts, 8))*128 + 3*128*128 + group*topBytes + 16
}

func (s *Set) merge(in cu.Stream, a Answer, blocks, queries int) error {
	return driver.Launch(s.functions["merge"], in, driver.Size{X: uint32(queries)}, driver.Size{X: 128}, 0,
		uint64(a.Rows), uint64(a.Scores), uint64(a.Candidates), driver.Int(blocks*a.K), driver.Int(a.K))
}
