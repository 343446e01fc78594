package simd

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// PostingBlock is how many postings are packed together at most, and
// PostingSlack what kernels may write, and ignore, behind them.
const (
	PostingBlock = 128
	PostingSlack = 16
)

// PostingNumbers holds the numbers of one block.
type PostingNumbers [PostingBlock + PostingSlack]uint32

// PostingWindow is how many slots have their points summed up at a time.
const PostingWindow = 4096

// PostingPeaks is how many peaks a block has.
const PostingPeaks = 4

// PostingSums are the points of a window's slots.
type PostingSums [PostingWindow]uint32

// Saturation is BM25 for one term: a posting is worth
// Weight·tf/(tf + (Base + Slope·length)) points, cut to a whole number, and one.
type Saturation struct{ Weight, Base, Slope float64 }

// Points of a posting. The conversion keeps a compiler from fusing operations.
func (s Saturation) Points(freq, length uint32) uint32 {
	tf := float64(freq)
	share := tf / (tf + (s.Base + float64(s.Slope*float64(length))))
	return uint32(int64(s.Weight*share)) + 1
}

// Postings is the kernels of packed posting lists for one instruction set; all
// give the same bits.
type Postings struct {
	// Unpack writes add plus each of n packed numbers of width bits, at most 32;
	// the lowest bit comes first. 8 bytes and more behind the numbers are loaded.
	Unpack func(dst *PostingNumbers, packed []byte, width uint, n int, add uint32)

	// Expand writes the places of the bits set in little-endian words, counted
	// from first, and returns how many there are; more than PostingBlock: −1.
	Expand func(dst *PostingNumbers, words []byte, first uint32) int

	// Score adds the points of postings to the sums of their slots, which are
	// counted from lo; others than those with a length are left out.
	Score func(sums *PostingSums, lengths, slots, freqs []uint32, lo uint32, s Saturation)

	// Bound writes, for each PostingPeaks pairs of 16-bit frequency and length,
	// little-endian, the greatest number of points one has, and one for what
	// rounding may do to their order. The greatest frequency stands for more.
	Bound func(dst []uint32, peaks []byte, s Saturation)

	// Reach sets the bits of the sums that are at least need.
	Reach func(bits *[PostingWindow / 64]uint64, sums *PostingSums, need uint32)
}

var portablePostings = Postings{Unpack: unpackGo, Expand: expandGo, Score: scoreGo, Bound: boundGo, Reach: reachGo}

// BestPostings are the fastest that this CPU can run.
func BestPostings() Postings { return supportedPostings()[0] }

func supportedPostings() []Postings { return append(acceleratedPostings(), portablePostings) }

func unpackGo(dst *PostingNumbers, packed []byte, width uint, n int, add uint32) {
	for i := range n {
		dst[i] = add + UnpackOne(packed, width, i)
	}
}

// UnpackOne reads the i-th number of width bits, at most 32. Eight bytes from its
// first on must be there.
func UnpackOne(packed []byte, width uint, i int) uint32 {
	bit := uint(i) * width
	return uint32(binary.LittleEndian.Uint64(packed[bit>>3:])>>(bit&7)) & (1<<width - 1)
}

func expandGo(dst *PostingNumbers, words []byte, first uint32) (n int) {
	for ; len(words) >= 8; words, first = words[8:], first+64 {
		word := binary.LittleEndian.Uint64(words)
		if n+bits.OnesCount64(word) > PostingBlock {
			return -1
		}
		for ; word != 0; word &= word - 1 {
			dst[n] = first + uint32(bits.TrailingZeros64(word))
			n++
		}
	}
	return n
}

func scoreGo(sums *PostingSums, lengths, slots, freqs []uint32, lo uint32, s Saturation) {
	for i, slot := range slots {
		if at := slot - lo; at < uint32(len(lengths)) && at < PostingWindow {
			sums[at] += s.Points(freqs[i], lengths[at])
		}
	}
}

func boundGo(dst []uint32, peaks []byte, s Saturation) {
	for i := range dst {
		best := uint32(0)
		for p := range PostingPeaks {
			at := peaks[4*(i*PostingPeaks+p):]
			freq, length := uint32(binary.LittleEndian.Uint16(at)), uint32(binary.LittleEndian.Uint16(at[2:]))
			if freq == math.MaxUint16 {
				freq = math.MaxUint32
			}
			best = max(best, s.Points(freq, length))
		}
		dst[i] = best + 1
	}
}

func reachGo(bits *[PostingWindow / 64]uint64, sums *PostingSums, need uint32) {
	for w := range bits {
		word := uint64(0)
		for i, sum := range sums[w*64 : w*64+64] {
			if sum >= need {
				word |= 1 << i
			}
		}
		bits[w] = word
	}
}
