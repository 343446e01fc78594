package simd

import "golang.org/x/sys/cpu"

func acceleratedPostings() []Postings {
	if !cpu.X86.HasAVX512F || !cpu.X86.HasPOPCNT {
		return nil
	}
	return []Postings{{Unpack: unpack512, Expand: expand512, Score: score512, Bound: bound512, Reach: reach512}}
}

// widestGather is how many bits a number may have that lies anywhere in four
// bytes from the byte of its first bit.
const widestGather = 25

func unpack512(dst *PostingNumbers, packed []byte, width uint, n int, add uint32) {
	if width > widestGather || n < 16 {
		unpackGo(dst, packed, width, n, add)
		return
	}
	whole := n &^ 15 // the gathers end 8 bytes behind these at most
	_ = packed[(uint(whole)*width+7)/8+3]
	unpackAVX512(&dst[0], &packed[0], width, whole, add)
	for i := whole; i < n; i++ {
		dst[i] = add + UnpackOne(packed, width, i)
	}
}

func expand512(dst *PostingNumbers, words []byte, first uint32) int {
	if len(words) < 8 {
		return 0
	}
	return expandAVX512(&dst[0], &words[0], len(words)/8, first)
}

func score512(sums *PostingSums, lengths, slots, freqs []uint32, lo uint32, s Saturation) {
	if n := min(len(slots), len(freqs)); n > 0 && len(lengths) > 0 {
		scoreAVX512(sums, &lengths[0], &slots[0], &freqs[0], n, lo, uint32(min(len(lengths), PostingWindow)), &s)
	}
}

func bound512(dst []uint32, peaks []byte, s Saturation) {
	fours := len(dst) / 4
	if fours > 0 {
		_ = peaks[64*fours-1]
		boundAVX512(&dst[0], &peaks[0], fours, &s)
	}
	boundGo(dst[4*fours:], peaks[64*fours:], s)
}

func reach512(bits *[PostingWindow / 64]uint64, sums *PostingSums, need uint32) {
	reachAVX512(bits, sums, need)
}

//go:noescape
func unpackAVX512(dst *uint32, packed *byte, width uint, n int, add uint32)

//go:noescape
func expandAVX512(dst *uint32, words *byte, n int, first uint32) int

//go:noescape
func scoreAVX512(sums *PostingSums, lengths, slots, freqs *uint32, n int, lo, limit uint32, s *Saturation)

//go:noescape
func boundAVX512(dst *uint32, peaks *byte, fours int, s *Saturation)

//go:noescape
func reachAVX512(bits *[PostingWindow / 64]uint64, sums *PostingSums, need uint32)
