package ivf

import (
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
	centre []float32 // rotated
	square float32   // its squared length
	rows   []uint32  // by lane, ascending; none at the end
	codes  []byte    // by block of lanes
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
	blocks := (a.count + ref.CodeLanes - 1) / ref.CodeLanes
	p := &packed{rows: make([]uint32, 0, blocks*ref.CodeLanes), codes: make([]byte, blocks*ref.CodeBlock(x.space.padded))}
	for row := range a.Each {
		p.rows = append(p.rows, row)
	}
	p.centre = x.meanOf(p.rows)
	p.square = x.space.kernels.Dot(p.centre, p.centre)
	v, block := make([]float32, x.space.padded), ref.CodeBlock(x.space.padded)
	for i := range p.rows[:cap(p.rows)] {
		code, lane := p.codes[i/ref.CodeLanes*block:][:block], i%ref.CodeLanes
		if i >= a.count {
			p.rows = append(p.rows, none)
			setFactors(code, lane, x.space.padded/32, impossible, 0)
			continue
		}
		x.floats(v, p.rows[i])
		encode(code, lane, v, p.centre)
	}
	return p
}

// meanOf is about the mean of some rows, rotated.
func (x *Index) meanOf(rows []uint32) []float32 {
	centre, v, n := make([]float32, x.space.padded), make([]float32, x.space.padded), 0
	for i := 0; i < len(rows); i += max(len(rows)/packedSample, 1) {
		x.floats(v, rows[i])
		for d, f := range v {
			centre[d] += f
		}
		n++
	}
	for d := range centre {
		centre[d] /= float32(n)
	}
	return centre
}

// floats sets v to a rotated row, as far as its bytes tell.
func (x *Index) floats(v []float32, row uint32) {
	for d, b := range x.bytes[int(row)*len(v):][:len(v)] {
		v[d] = float32(int(b)-128) * x.step
	}
}

// searchPacked estimates every packed row and scores those that may be among the best.
func (x *Index) searchPacked(q *Query, p *packed, live []uint64, k int, floor float32, s *Scratch) []uint32 {
	margin := x.likely(q)
	s.found.reset(k, x.floorOf(q, floor, margin), int32(margin/x.unit(q))+1)
	s.waiting = s.waiting[:0]
	product, block := x.space.kernels.Dot(q.rotated, p.centre), ref.CodeBlock(x.space.padded)
	distance := float64(max(q.norm*q.norm+p.square-2*product, 0))
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

// await puts the live rows of some lanes among those to be scored.
func (x *Index) await(rows []uint32, lanes uint16, live []uint64, s *Scratch) {
	for ; lanes != 0; lanes &= lanes - 1 {
		row := rows[bits.TrailingZeros16(lanes)]
		if row == none || live != nil && live[row/64]>>(row%64)&1 == 0 {
			continue
		}
		s.waiting = append(s.waiting, row)
		x.space.kernels.Fetch(x.bytes[int(row)*x.space.padded:][:x.space.padded])
	}
}
