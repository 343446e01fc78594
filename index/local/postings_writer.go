package local

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// appendList encodes postings in ascending order of slot. places holds, for each
// in turn, its encoded places and a zero; nil: none are kept. lengths are those
// of the slots.
func appendList(dst []byte, list []posting, places []byte, lengths []uint32) []byte {
	start := len(dst)
	blocks := (len(list) + blockPostings - 1) / blockPostings
	dst = append(dst, make([]byte, blocks*(blockHeaderSize+peaksSize))...)
	bodies, base, placed := len(dst), uint32(0), 0
	for i := range blocks {
		block := list[i*blockPostings : min(len(list), (i+1)*blockPostings)]
		last := block[len(block)-1].slot
		dst = appendBody(dst, block, base, last)
		placed += placesOf(places[placed:], len(block))
		header := dst[start+i*blockHeaderSize:]
		binary.LittleEndian.PutUint32(header, last)
		binary.LittleEndian.PutUint32(header[4:], uint32(len(dst)-bodies))
		binary.LittleEndian.PutUint32(header[8:], uint32(placed))
		putPeaks(dst[start+blocks*blockHeaderSize+i*peaksSize:], block, lengths)
		base = last + 1
	}
	return append(dst, places...)
}

// appendBody packs one block; dense slots become a bitmap.
func appendBody(dst []byte, block []posting, base, last uint32) []byte {
	freqWidth := 0
	for _, p := range block {
		freqWidth = max(freqWidth, bits.Len32(p.freq-1))
	}
	if words := bitmapWords(base, last); words <= len(block)/bitmapShare {
		dst = append(dst, bitmapWidth, byte(freqWidth))
		dst = appendBitmap(dst, block, base, words)
	} else {
		width := bits.Len32(last - base)
		dst = append(dst, byte(width), byte(freqWidth))
		dst = pack(dst, len(block), width, func(i int) uint32 { return block[i].slot - base })
	}
	return pack(dst, len(block), freqWidth, func(i int) uint32 { return block[i].freq - 1 })
}

func appendBitmap(dst []byte, block []posting, base uint32, words int) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, 8*words)...)
	for _, p := range block {
		bit := p.slot - base&^63
		dst[start+int(bit>>3)] |= 1 << (bit & 7)
	}
	return dst
}

// pack appends n numbers of width bits, the lowest bit first.
func pack(dst []byte, n, width int, number func(int) uint32) []byte {
	var held uint64
	filled := 0
	for i := range n {
		held |= uint64(number(i)) << filled
		for filled += width; filled >= 8; filled -= 8 {
			dst = append(dst, byte(held))
			held >>= 8
		}
	}
	if filled > 0 {
		dst = append(dst, byte(held))
	}
	return dst
}

// placesOf returns how many bytes the places of the next n postings take.
func placesOf(places []byte, n int) (size int) {
	for ; n > 0 && len(places) > 0; n-- {
		end := bytes.IndexByte(places[size:], 0) + 1
		size += end
	}
	return size
}

// peak is a frequency and a length: no posting it stands for is more frequent,
// none is in a shorter text.
type peak struct{ freq, length uint32 }

// putPeaks writes the peaks of a block. The score grows with the frequency and
// shrinks with the length, so a posting that another one matches in both adds
// nothing; where too many are left, neighbours are joined. No statistics
// enter: the bound holds for every set of visible rows.
func putPeaks(dst []byte, block []posting, lengths []uint32) {
	var room [blockPostings]peak
	peaks := room[:0]
	for _, p := range block {
		peaks = append(peaks, peak{p.freq, lengths[p.slot]})
	}
	peaks = joined(frontier(peaks))
	for i := range blockPeaks {
		p := peaks[min(i, len(peaks)-1)]
		binary.LittleEndian.PutUint16(dst[4*i:], uint16(min(p.freq, math.MaxUint16)))
		binary.LittleEndian.PutUint16(dst[4*i+2:], uint16(min(p.length, math.MaxUint16)))
	}
}

// peakAt is the i-th of encoded peaks.
func peakAt(peaks []byte, i int) peak {
	at := peaks[4*i:]
	return peak{uint32(binary.LittleEndian.Uint16(at)), uint32(binary.LittleEndian.Uint16(at[2:]))}
}

// frontier keeps the peaks that no other matches, the most frequent first.
func frontier(peaks []peak) []peak {
	slices.SortFunc(peaks, func(a, b peak) int {
		if a.freq != b.freq {
			return int(int64(b.freq) - int64(a.freq))
		}
		return int(int64(a.length) - int64(b.length))
	})
	kept := peaks[:1]
	for _, p := range peaks[1:] {
		if p.length < kept[len(kept)-1].length {
			kept = append(kept, p)
		}
	}
	return kept
}

// joined joins neighbours, those that lose least first, until few are left.
func joined(peaks []peak) []peak {
	for len(peaks) > blockPeaks {
		best, least := 0, math.Inf(1)
		for i := range len(peaks) - 1 {
			if lost := loss(peaks[i], peaks[i+1]); lost < least {
				best, least = i, lost
			}
		}
		peaks[best].length = peaks[best+1].length
		peaks = slices.Delete(peaks, best+1, best+2)
	}
	return peaks
}

// loss is by how much the bound grows where two peaks become one, for texts
// of a usual length.
func loss(a, b peak) float64 {
	usual := newBM25(1, 100).term(1 << 30)
	return float64(usual.Points(a.freq, b.length)) - float64(max(usual.Points(a.freq, a.length), usual.Points(b.freq, b.length)))
}
