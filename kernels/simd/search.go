package simd

import (
	"encoding/binary"
	"math"
	"math/bits"

	"sluice/kernels/ref"
)

// searchSet is the kernels of vector search of one instruction set.
type searchSet struct {
	dot      func(a, b []float32) float32
	dotRows  func(query, rows []float32, slots []uint32, products []float32)
	hadamard func(x, signs []float32)
	dotBytes func(query []int8, rows []byte, slots []uint32, products []int32)
	scan     func(q *CodeQuery, blocks, ahead []byte, base, shift, threshold float32, estimates []float32, masks []uint16)
	above    func(values []float32, threshold float32, indices []uint32) int
	fetch    func(b []byte)
}

func portableSearch() searchSet {
	return searchSet{dot: ref.Dot, dotRows: dotRowsGo, hadamard: ref.Hadamard, dotBytes: dotBytesGo, scan: scanGo, above: aboveGo, fetch: func([]byte) {}}
}

// Dot is ref.Dot, bit for bit.
func (s *Set) Dot(a, b []float32) float32 { return s.search.dot(a, b[:len(a)]) }

// DotRows computes the inner products of the query with some rows of as many
// dimensions, by number: each is ref.Dot, bit for bit.
func (s *Set) DotRows(query, rows []float32, slots []uint32, products []float32) {
	if len(slots) > 0 {
		s.search.dotRows(query, rows, slots, products[:len(slots)])
	}
}

func dotRowsGo(query, rows []float32, slots []uint32, products []float32) {
	for i, slot := range slots {
		products[i] = ref.Dot(query, rows[int(slot)*len(query):][:len(query)])
	}
}

// Hadamard is ref.Hadamard, bit for bit.
func (s *Set) Hadamard(x, signs []float32) { s.search.hadamard(x, signs[:len(x)]) }

// Fetch asks for memory that will soon be read to be brought into the cache.
func (s *Set) Fetch(b []byte) {
	if len(b) > 0 {
		s.search.fetch(b)
	}
}

// DotBytes computes the inner products of the query, of a multiple of 64
// dimensions, with some rows of unsigned bytes of as many, by number.
func (s *Set) DotBytes(query []int8, rows []byte, slots []uint32, products []int32) {
	if len(slots) > 0 {
		s.search.dotBytes(query, rows, slots, products[:len(slots)])
	}
}

func dotBytesGo(query []int8, rows []byte, slots []uint32, products []int32) {
	for i, slot := range slots {
		sum := int32(0)
		for d, x := range rows[int(slot)*len(query):][:len(query)] {
			sum += int32(x) * int32(query[d])
		}
		products[i] = sum
	}
}

// Above writes the indices of the values that are at least threshold, ascending,
// and returns how many they are. indices has room for as many as values.
func (s *Set) Above(values []float32, threshold float32, indices []uint32) int {
	if len(values) == 0 {
		return 0
	}
	return s.search.above(values, threshold, indices[:len(values)])
}

func aboveGo(values []float32, threshold float32, indices []uint32) (n int) {
	for i, v := range values {
		if v >= threshold {
			indices[n] = uint32(i)
			n++
		}
	}
	return n
}

// CodeQuery is a query in 4-bit numbers, prepared for ScanCodes.
type CodeQuery struct {
	Scale  float32     // of a step
	planes [][4]uint32 // by 32 dimensions: their lowest, second, third and sign bits
}

// Reset prepares values from -8 to 7, a multiple of 64 of them, reusing q's memory.
func (q *CodeQuery) Reset(values []int8) {
	if words := len(values) / 32; cap(q.planes) < words {
		q.planes = make([][4]uint32, words)
	}
	q.planes = q.planes[:len(values)/32]
	for w := range q.planes {
		q.planes[w] = planesOf(values[32*w:][:32])
	}
}

// planesOf collects the bits of 32 values, eight at a time: a multiplication
// gathers the lowest bit of each byte in the highest byte.
func planesOf(values []int8) (planes [4]uint32) {
	const lowest, gather = 0x0101010101010101, 0x0102040810204080
	for group := 0; group < 32; group += 8 {
		var eight uint64
		for i, v := range values[group : group+8] {
			eight |= uint64(uint8(v)) << (8 * i)
		}
		for b := range planes {
			planes[b] |= uint32(eight>>b&lowest*gather>>56) << group
		}
	}
	return planes
}

// ScanCodes computes ref.ScanBlock for whole blocks: the estimates, and a mask
// of the lanes where they exceed the threshold. As many blocks of ahead are
// fetched into the cache; it may be shorter, or nil.
func (s *Set) ScanCodes(q *CodeQuery, blocks, ahead []byte, base, shift, threshold float32, estimates []float32, masks []uint16) {
	size := ref.CodeBlock(32 * len(q.planes))
	n := len(blocks) / size
	if n == 0 {
		return
	}
	s.search.scan(q, blocks[:n*size], ahead, base, shift, threshold, estimates[:n*ref.CodeLanes], masks[:n])
}

func scanGo(q *CodeQuery, blocks, _ []byte, base, shift, threshold float32, estimates []float32, masks []uint16) {
	size := ref.CodeBlock(32 * len(q.planes))
	for b := range masks {
		block := blocks[b*size:][:size]
		masks[b] = 0
		for lane := range ref.CodeLanes {
			e := q.estimate(block, lane, base, shift)
			estimates[b*ref.CodeLanes+lane] = e
			if e > threshold {
				masks[b] |= 1 << lane
			}
		}
	}
}

func (q *CodeQuery) estimate(block []byte, lane int, base, shift float32) float32 {
	word := func(w int) uint32 { return binary.LittleEndian.Uint32(block[4*(w*ref.CodeLanes+lane):]) }
	sum := 0
	for w, planes := range q.planes {
		signs := word(w)
		sum += bits.OnesCount32(signs&planes[0]) + 2*bits.OnesCount32(signs&planes[1]) +
			4*bits.OnesCount32(signs&planes[2]) - 8*bits.OnesCount32(signs&planes[3])
	}
	offset, factor := math.Float32frombits(word(len(q.planes))), math.Float32frombits(word(len(q.planes)+1))
	return offset + base + factor*(q.Scale*float32(sum)+shift)
}
