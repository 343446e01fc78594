package local

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"

	"sluice/kernels/simd"
)

const (
	blockPostings   = simd.PostingBlock
	blockPeaks      = simd.PostingPeaks
	blockHeaderSize = 12
	peaksSize       = 4 * blockPeaks
	bitmapWidth     = 0xFF // as the width of slots: they are a bitmap
	bitmapShare     = 4    // postings per word of a bitmap, at least
	slack           = 8    // bytes after a list that a reader may load and ignore
)

// posting says that a slot's text has a term so many times, by field weight.
type posting struct {
	slot uint32
	freq uint32
}

// postingList is the encoded list of one term, ascending by slot: a header for
// each block of up to blockPostings, then the peaks of each, then their bodies,
// then the places of all postings. docs/formats/index.md has the bytes.
//
// Any posting of a block can be read without those before it. Header and peaks say
// enough to skip a block: its last slot, and what bounds every score in it
// whatever the statistics are.
type postingList struct {
	count uint32
	data  []byte // its capacity goes slack bytes beyond
}

func (l postingList) blocks() int { return (int(l.count) + blockPostings - 1) / blockPostings }

// bodies is where the first block's body begins.
func (l postingList) bodies() int { return l.blocks() * (blockHeaderSize + peaksSize) }

// check makes sure that the headers can be read.
func (l postingList) check() error {
	if l.count > 0 && (l.bodies() > len(l.data) || cap(l.data) < len(l.data)+slack) {
		return damaged("cut posting list")
	}
	return nil
}

func (l postingList) header(i int) []byte { return l.data[i*blockHeaderSize:][:blockHeaderSize] }

// peaks are those of all blocks.
func (l postingList) peaks() []byte { return l.data[l.blocks()*blockHeaderSize : l.bodies()] }

// last is the last slot of a block.
func (l postingList) last(i int) uint32 { return binary.LittleEndian.Uint32(l.header(i)) }

// base is the first slot that a block may hold.
func (l postingList) base(i int) uint32 {
	if i == 0 {
		return 0
	}
	return l.last(i-1) + 1
}

// bodyEnd is where a block's body ends, counted from the first body.
func (l postingList) bodyEnd(i int) uint32 {
	if i < 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(l.header(i)[4:])
}

// placesEnd is where a block's places end, counted from the first block's.
func (l postingList) placesEnd(i int) uint32 {
	if i < 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(l.header(i)[8:])
}

// places are those of all postings of a block, each ended by a zero.
func (l postingList) places(i int) ([]byte, error) {
	start := uint64(l.bodies()) + uint64(l.bodyEnd(l.blocks()-1))
	from, to := start+uint64(l.placesEnd(i-1)), start+uint64(l.placesEnd(i))
	if from > to || to > uint64(len(l.data)) {
		return nil, damaged("places outside their list")
	}
	return l.data[from:to], nil
}

// skipTo returns the first block at or after from that ends at the slot or later.
func (l postingList) skipTo(from int, slot uint32) int {
	return gallop(from, l.blocks(), func(i int) bool { return l.last(i) >= slot })
}

// block is one block of a list, ready to be read.
type block struct {
	base, last uint32
	n          int
	width      uint   // bits of a slot, or bitmapWidth
	slots      []byte // with slack
	freqWidth  uint   // bits of a frequency
	freqs      []byte // with slack
}

// open makes b the i-th block of a list.
func (b *block) open(l postingList, i int) error {
	b.base, b.last, b.n = l.base(i), l.last(i), min(blockPostings, int(l.count)-i*blockPostings)
	from, to := uint64(l.bodies())+uint64(l.bodyEnd(i-1)), uint64(l.bodies())+uint64(l.bodyEnd(i))
	if from+2 > to || to > uint64(len(l.data)) || b.last < b.base || b.last+1 == 0 {
		return damaged("posting block header")
	}
	b.width, b.freqWidth = uint(l.data[from]), uint(l.data[from+1])
	slots := packedSize(b.n, b.width)
	if b.width == bitmapWidth {
		slots = 8 * bitmapWords(b.base, b.last)
	}
	if b.width == bitmapWidth && bitmapWords(b.base, b.last) > b.n/bitmapShare {
		return damaged("posting bitmap")
	}
	if b.width > 32 && b.width != bitmapWidth || b.freqWidth > 32 ||
		uint64(slots)+uint64(packedSize(b.n, b.freqWidth)) != to-from-2 {
		return damaged("posting block")
	}
	b.slots = l.data[from+2 : to+slack]
	b.freqs = b.slots[slots:]
	return nil
}

func packedSize(n int, width uint) int { return (n*int(width) + 7) / 8 }

// bitmapWords is how many words hold the slots from base to last.
func bitmapWords(base, last uint32) int { return int(last>>6-base>>6) + 1 }

func (b *block) freq(i int) uint32 { return 1 + simd.UnpackOne(b.freqs, b.freqWidth, i) }

func (b *block) packedSlot(i int) uint32 { return b.base + simd.UnpackOne(b.slots, b.width, i) }

// word is the w-th word of a bitmap.
func (b *block) word(w int) uint64 { return binary.LittleEndian.Uint64(b.slots[8*w:]) }

// find returns which posting is the slot's, if one is.
func (b *block) find(slot uint32) (i int, ok bool) {
	if slot < b.base || slot > b.last {
		return 0, false
	}
	if b.width == bitmapWidth {
		return b.rank(slot)
	}
	i = b.search(slot)
	return i, i < b.n && b.packedSlot(i) == slot
}

// search returns the first posting at the slot or after it. The slots are packed.
func (b *block) search(slot uint32) int {
	return sort.Search(b.n, func(i int) bool { return b.packedSlot(i) >= slot })
}

// rank counts the bits before the slot's, and says whether its own is set.
func (b *block) rank(slot uint32) (before int, set bool) {
	at := int(slot>>6 - b.base>>6)
	for w := range at {
		before += bits.OnesCount64(b.word(w))
	}
	word, bit := b.word(at), uint64(1)<<(slot&63)
	before += bits.OnesCount64(word & (bit - 1))
	return before, word&bit != 0 && before < b.n
}

// place returns the places of the i-th posting of a block.
func place(places []byte, i int) ([]byte, error) {
	for ; ; i-- {
		end := bytes.IndexByte(places, 0)
		if end < 0 {
			return nil, damaged("places end early")
		}
		if i == 0 {
			return places[:end], nil
		}
		places = places[end+1:]
	}
}

// appendPlaces decodes the places of one posting: differences, ascending.
func appendPlaces(dst []uint32, encoded []byte) ([]uint32, error) {
	for next := uint64(0); len(encoded) > 0; {
		delta, n := binary.Uvarint(encoded)
		if n <= 0 || delta == 0 || next+delta > 1<<32 {
			return dst, damaged("places")
		}
		next += delta
		dst = append(dst, uint32(next-1))
		encoded = encoded[n:]
	}
	return dst, nil
}
