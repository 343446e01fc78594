package ivf

import (
	"encoding/binary"
	"math"
	"math/bits"

	"sluice/kernels/ref"
)

const (
	// A Set that is searched again and again is packed: by then searches without
	// have cost about as much as packing does.
	packedAfter = 32
	mostPacked  = 1 << 15 // rows: about 2 MB and 30 ms once

	// Scanning a packed row costs as much as scoring one of so many.
	packedPerRow = 8

	// packedDoubt is doubt for packed rows: here an estimate is all that stands
	// between a row and its score, so nearly none may be lost.
	packedDoubt = 3

	packedSample = 256 // rows whose mean is the codes' centre
)

// packed is codes of the allowed rows alone, around their mean: where few of a
// list's rows are allowed, its codes would be scanned for the others.
type packed struct {
	centre []byte   // in the bytes of a row
	rows   []uint32 // by lane, ascending; none at the end
	codes  []byte   // by block of lanes
}

// packed returns the packed rows once that pays; nil: not yet, or never.
func (a *Allowed) packed(x *Index) *packed {
	if a.count > mostPacked || float64(a.count/packedPerRow+fewRows) > x.listsCost(a) {
		return nil
	}
	if p := a.packing.Load(); p != nil {
		return p
	}
	if a.uses.Add(1) == packedAfter {
		a.packing.Store(x.pack(a))
	}
	return a.packing.Load()
}

func (x *Index) pack(a *Allowed) *packed {
	blocks, block := (a.count+ref.CodeLanes-1)/ref.CodeLanes, ref.CodeBlock(x.space.padded)
	p := &packed{rows: make([]uint32, 0, blocks*ref.CodeLanes), codes: make([]byte, blocks*block)}
	for row := range a.Each {
		p.rows = append(p.rows, row)
	}
	p.centre = x.meanOf(p.rows)
	for i := range p.rows[:cap(p.rows)] {
		code, lane := p.codes[i/ref.CodeLanes*block:][:block], i%ref.CodeLanes
		if i < a.count {
			encodeBytes(code, lane, x.row(p.rows[i]), p.centre, x.step)
			continue
		}
		p.rows = append(p.rows, none)
		setFactors(code, lane, x.space.padded/32, impossible, 0)
	}
	return p
}

func (x *Index) row(row uint32) []byte { return x.bytes[int(row)*x.space.padded:][:x.space.padded] }

// meanOf is about the mean of some rows, in the bytes of a row.
func (x *Index) meanOf(rows []uint32) []byte {
	sums, n := make([]int, x.space.padded), 0
	for i := 0; i < len(rows); i += max(len(rows)/packedSample, 1) {
		for d, b := range x.row(rows[i]) {
			sums[d] += int(b)
		}
		n++
	}
	centre := make([]byte, len(sums))
	for d, sum := range sums {
		centre[d] = byte((sum + n/2) / n)
	}
	return centre
}

// encodeBytes is encode for a row and a centre in bytes of steps.
func encodeBytes(block []byte, lane int, x, centre []byte, step float32) {
	var square uint32 // of 65,536 dimensions too
	var absolute, along, signed int32
	for w := 0; w < len(x)/32; w++ {
		var signs uint32
		xs, cs := x[32*w:][:32], centre[32*w:][:32]
		for i, b := range xs {
			c := int32(cs[i]) - 128
			r := int32(b) - int32(cs[i])
			negative := r >> 31 // all ones, or 0
			signs |= uint32(negative+1) << i
			square += uint32(r * r)
			absolute += r ^ negative - negative
			along += c * r
			signed += c ^ negative - negative
		}
		binary.LittleEndian.PutUint32(block[4*(w*ref.CodeLanes+lane):], signs)
	}
	root := float32(math.Sqrt(float64(len(x))))
	factor := step * float32(square) * root / float32(max(absolute, 1))
	setFactors(block, lane, len(x)/32, step*(step*float32(along)-factor*float32(signed)/root), factor)
}

// searchPacked estimates every packed row and scores those that may be among the best.
func (x *Index) searchPacked(q *Query, p *packed, live []uint64, k int, floor float32, s *Scratch) []uint32 {
	q.encode()
	margin := x.likely(q)
	s.found.reset(k, x.floorOf(q, floor, margin), int32(margin/x.unit(q))+1)
	s.waiting = s.waiting[:0]
	block := ref.CodeBlock(x.space.padded)
	product, distance := x.centreOf(q, p)
	shift := q.shift + packedDoubt*estimateError*float32(math.Sqrt(distance/float64(x.space.padded-1)))
	for at := 0; at < len(p.codes); at += chunkBlocks * block {
		codes := p.codes[at:min(at+chunkBlocks*block, len(p.codes))]
		x.space.kernels.ScanCodes(&q.code, codes, p.codes[at+len(codes):], product, shift, floor, s.estimates[:], s.masks[:])
		for b, lanes := range s.masks[:len(codes)/block] {
			x.await(p.rows[(at/block+b)*ref.CodeLanes:][:ref.CodeLanes], lanes, live, s)
		}
		if len(s.waiting) >= fewWaiting {
			x.scoreWaiting(q, s)
			floor = max(floor, s.kth(x.unit(q)))
		}
	}
	x.scoreWaiting(q, s)
	return s.result()
}

// centreOf returns the query's product with the packed rows' centre, and the
// squared distance between them.
func (x *Index) centreOf(q *Query, p *packed) (product float32, distance float64) {
	for d, b := range p.centre {
		c := float32(int(b)-128) * x.step
		product += q.rotated[d] * c
		distance += float64((q.rotated[d] - c) * (q.rotated[d] - c))
	}
	return product, distance
}

// await puts the live rows of some lanes among those to be scored.
func (x *Index) await(rows []uint32, lanes uint16, live []uint64, s *Scratch) {
	for ; lanes != 0; lanes &= lanes - 1 {
		row := rows[bits.TrailingZeros16(lanes)]
		if row == none || live != nil && live[row/64]>>(row%64)&1 == 0 {
			continue
		}
		s.waiting = append(s.waiting, row)
		x.space.kernels.Fetch(x.row(row))
	}
}
